import { describe, expect, it } from 'vitest';
import { type Change, type RawObject, WatchedCache, withQuery } from '../../src/kube/cache.ts';

type Thing = RawObject & { readonly text: string };

const thing = (name: string, uid: string, revision: number, text = ''): Thing => ({
  metadata: { namespace: 'shop', name, uid, resourceVersion: String(revision) },
  text,
});

/** A cache with a record of what it told: `+` new, `~` changed, `-` gone. */
function recorded() {
  const cache = new WatchedCache<Thing, string>({
    path: '/things',
    view: (raw, previous) => `${raw.text}${previous === undefined ? '' : ` after ${previous}`}`,
  });
  const told: string[] = [];
  cache.onChange(({ entry, previous }: Change<Thing, string>) => {
    const sign = entry === undefined ? '-' : previous === undefined ? '+' : '~';
    told.push(`${sign}${(entry ?? previous)?.raw.metadata.uid} ${(entry ?? previous)?.view}`);
  });
  return { cache, told };
}

describe('a watched cache', () => {
  it('tells what is new, changed and gone, with the former view', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u1', 5, 'one'));
    cache.put(thing('a', 'u1', 6, 'two'));
    cache.remove(thing('a', 'u1', 7, 'last'));
    expect(told).toEqual(['+u1 one', '~u1 two after one', '-u1 last after two after one']);
    expect(cache.size).toBe(0);
  });

  it('never goes back to an older revision, and compares revisions as numbers', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u1', 10, 'ten'));
    cache.put(thing('a', 'u1', 9, 'nine'));
    cache.put(thing('a', 'u1', 10, 'again'));
    expect(told).toEqual(['+u1 ten']);
  });

  it('does not bring back what is gone when the reply to a write comes late', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u1', 5));
    cache.remove(thing('a', 'u1', 7));
    cache.put(thing('a', 'u1', 6));
    expect(cache.get('shop', 'a')).toBeUndefined();
    expect(told).toHaveLength(2);
  });

  it('takes an object of the same name and another UID for another object', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u1', 5, 'first'));
    cache.put(thing('a', 'u2', 8, 'second'));
    cache.remove(thing('a', 'u1', 6));
    expect(told).toEqual(['+u1 first', '-u1 first', '+u2 second']);
    expect(cache.get('shop', 'a')?.view).toBe('second');
  });

  it('does not take an earlier object of the same name for a new one, when its watch lags behind a reply', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u2', 8, 'second'));
    cache.put(thing('a', 'u1', 5, 'first'));
    cache.remove(thing('a', 'u1', 6));
    cache.put(thing('a', 'u2', 8, 'second'));
    expect(told).toEqual(['+u2 second']);
    expect(cache.get('shop', 'a')?.view).toBe('second');
  });

  it('keeps the newer state it has when the deletion tells an older one', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u1', 9, 'newest'));
    cache.remove(thing('a', 'u1', 5, 'old'));
    expect(told.at(-1)).toBe('-u1 newest');
  });
});

describe('a list that this process has overtaken', () => {
  it('does not take away what a write of its own has made since', () => {
    const { cache, told } = recorded();
    cache.put(thing('a', 'u1', 115, 'made'));
    cache.takeList([], '110');
    expect(cache.get('shop', 'a')?.view).toBe('made');
    cache.put(thing('a', 'u1', 120, 'changed'));
    expect(told).toEqual(['+u1 made', '~u1 changed after made']);
  });

  it('takes away what it would have shown', () => {
    const { cache } = recorded();
    cache.put(thing('a', 'u1', 100));
    cache.takeList([], '110');
    expect(cache.size).toBe(0);
  });
});

describe('a list of an API server that went back to an earlier state', () => {
  /** With what it told of that, in the same record. */
  function followed() {
    const { cache, told } = recorded();
    cache.onWentBack(({ from, to }) => told.push(`went back from ${from} to ${to}`));
    const take = (revision: string, ...items: readonly Thing[]) => cache.takeList(items, revision, cache.beforeList());
    return { cache, told, take };
  }

  it('is taken as it is, and told before anything of it', () => {
    const { cache, told, take } = followed();
    take('100', thing('a', 'u1', 90, 'old'), thing('b', 'u2', 91, 'kept'));
    cache.put(thing('a', 'u1', 120, 'new'));
    cache.put(thing('c', 'u3', 130, 'made since'));
    told.length = 0;
    take('100', thing('a', 'u1', 90, 'old'), thing('b', 'u2', 91, 'kept'));
    expect(told).toEqual(['went back from 130 to 100', '-u3 made since', '~u1 old after new after old']);
    expect(cache.get('shop', 'a')?.raw.metadata.resourceVersion).toBe('90');
    expect(cache.highest).toBe(100n);
  });

  it('lets what was deleted since come again', () => {
    const { cache, take } = followed();
    take('100', thing('a', 'u1', 90, 'back'));
    cache.remove(thing('a', 'u1', 110));
    take('105', thing('a', 'u1', 90, 'back'));
    expect(cache.get('shop', 'a')?.view).toBe('back');
  });

  it('is recognised by one object when the revision has grown past all that was seen', () => {
    const { cache, told, take } = followed();
    take('100', thing('a', 'u1', 90));
    cache.put(thing('a', 'u1', 120));
    take('500', thing('a', 'u1', 90, 'old'));
    expect(told).toContain('went back from 120 to 500');
    expect(cache.get('shop', 'a')?.view).toMatch(/^old/);
  });

  it('is recognised by an object that was gone', () => {
    const { cache, told, take } = followed();
    take('100', thing('a', 'u1', 90));
    cache.remove(thing('a', 'u1', 120));
    take('500', thing('a', 'u1', 90, 'back'));
    expect(told).toContain('went back from 120 to 500');
    expect(cache.get('shop', 'a')?.view).toBe('back');
  });

  it('lets later changes in, though their revisions were seen before', () => {
    const { cache, take } = followed();
    take('100', thing('a', 'u1', 90));
    cache.put(thing('a', 'u1', 120));
    take('100', thing('a', 'u1', 90));
    cache.put(thing('a', 'u1', 101, 'after the restore'));
    expect(cache.get('shop', 'a')?.view).toMatch(/^after the restore/);
    cache.remove(thing('a', 'u1', 102));
    expect(cache.size).toBe(0);
  });

  it('is told once: the next list is an ordinary one', () => {
    const { told, take } = followed();
    take('100');
    take('50');
    take('50');
    take('51');
    expect(told).toEqual(['went back from 100 to 50']);
  });
});

describe('a list that is only late', () => {
  it('proves nothing when its reply was overtaken by the reply to a write', () => {
    const { cache, told } = recorded();
    cache.onWentBack(() => told.push('went back'));
    cache.put(thing('a', 'u1', 100));
    const asked = cache.beforeList();
    cache.put(thing('a', 'u1', 120, 'own write'));
    cache.takeList([thing('a', 'u1', 100)], '110', asked);
    expect(cache.get('shop', 'a')?.view).toMatch(/^own write/);
    expect(told).not.toContain('went back');
  });

  it('proves nothing when an object was seen to go while it was on its way', () => {
    const { cache, told } = recorded();
    cache.onWentBack(() => told.push('went back'));
    cache.put(thing('a', 'u1', 100));
    const asked = cache.beforeList();
    cache.remove(thing('a', 'u1', 120));
    cache.takeList([thing('a', 'u1', 100)], '110', asked);
    expect(cache.size).toBe(0);
    expect(told).not.toContain('went back');
  });
});

it('takes back an object that left the selection, as by a lost label, when it returns with a newer revision', () => {
  const { cache } = recorded();
  cache.put(thing('a', 'u1', 5));
  cache.remove(thing('a', 'u1', 6));
  cache.put(thing('a', 'u1', 6));
  expect(cache.size).toBe(0);
  cache.put(thing('a', 'u1', 7, 'back'));
  expect(cache.get('shop', 'a')?.view).toBe('back');
});

describe('withQuery', () => {
  it('leaves out what is undefined and encodes the rest', () => {
    expect(withQuery('/x', { a: undefined })).toBe('/x');
    expect(withQuery('/x', { labelSelector: 'a=b,c', fieldSelector: undefined })).toBe('/x?labelSelector=a%3Db%2Cc');
  });
});
