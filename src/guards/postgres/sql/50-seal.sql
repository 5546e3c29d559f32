-- Raises the mark before the first write, so that a late writer is refused even while the new holder has written nothing.
-- A new holder calls it once at its start, in a transaction of its own, and again on each new primary.
--
-- A holder that froze inside an open transaction blocks it: after `wait` the sessions in the way are ended, which rolls
-- back what they had not committed. Only those with a token not newer than this one. Returns how many it ended, within
-- `wait` and one second.
--
-- Errors: KL001, KL002, KL003 as kilit.enter; KL005 names what it cannot end: a prepared transaction, a session of a
-- superuser (when the guard's functions belong to another role without pg_signal_backend), an administrator's reset.
create or replace function kilit.seal(resource text, token text, wait interval default '2 seconds') returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = 0 as $$
declare
  t bigint := kilit.parse_token(seal.token);
  m kilit.mark;
  ended int[] := '{}';
  patience interval := seal.wait;
  give_up timestamptz := clock_timestamp() + seal.wait + interval '900 milliseconds';
begin
  if seal.wait is null or seal.wait < interval '0' or seal.wait > interval '1 minute' then
    raise exception using errcode = 'KL002', message = format('invalid wait %s: it must be from 0 to 1 minute', coalesce(seal.wait::text, 'null'));
  end if;
  perform kilit.check_resource(seal.resource);
  if t is null then perform kilit.refuse_invalid(seal.resource, seal.token); end if;
  select * into m from kilit.mark where mark.resource = seal.resource;
  if not found then
    if not kilit.lock_within(1802071146, hashtext(seal.resource), seal.wait) then
      perform kilit.refuse_blocked(1802071146, hashtext(seal.resource), seal.resource, t);
    end if;
    perform kilit.add_mark(seal.resource);
    select * into m from kilit.mark where mark.resource = seal.resource;
    if not found then
      raise serialization_failure using message = format('the mark of %L was added after this transaction''s snapshot; try again', seal.resource);
    end if;
  end if;
  if m.mode = 'observe' then
    perform kilit.enter_observed(m, t, seal.token);
    return 0;
  end if;
  if t = m.token then return 0; end if;
  if t < m.token then perform kilit.refuse_stale(m.id, seal.resource, t, m.token); end if;

  while not kilit.lock_within(1802071145, m.id, patience) loop
    if clock_timestamp() > give_up then perform kilit.refuse_blocked(1802071145, m.id, seal.resource, t); end if;
    ended := ended || kilit.end_older_sessions(m, t);
    patience := interval '100 milliseconds';
  end loop;
  select mark.token into m.token from kilit.mark where mark.id = m.id for update;
  if t < m.token then perform kilit.refuse_stale(m.id, seal.resource, t, m.token); end if;
  if t > m.token then perform kilit.raise_mark(m.id, seal.resource, t, m.token, sealed => true); end if;
  return (select count(distinct pid) from unnest(ended) pid);
end $$;

create or replace function kilit.seal(resource text, token bigint, wait interval default '2 seconds') returns int
language sql volatile
as $$ select kilit.seal(resource, token::text, wait) $$;

-- Takes an exclusive advisory lock, in order behind those who have it; false after `patience`.
create or replace function kilit.lock_within(class int, object int, patience interval) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = 0 as $$
begin
  -- 0 would mean "for ever".
  perform set_config('lock_timeout', greatest(1, ceil(extract(epoch from patience) * 1000))::int::text, true);
  perform pg_advisory_xact_lock(class, object);
  return true;
exception when lock_not_available then
  return false;
end $$;

-- Which other transactions have an advisory lock now. A prepared transaction has a gid and no pid.
create or replace function kilit.lock_holders(class int, object int)
returns table (pid int, shared boolean, role name, application text, gid text)
language sql volatile set search_path = pg_catalog, pg_temp
as $$
  select l.pid, l.mode = 'ShareLock', a.usename, a.application_name, p.gid
    from pg_locks l
    left join pg_stat_activity a on a.pid = l.pid
    left join pg_locks x on l.pid is null and x.pid is null and x.locktype = 'transactionid' and x.virtualtransaction = l.virtualtransaction
    left join pg_prepared_xacts p on p.transaction = x.transactionid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 2
      and l.classid::bigint = class and l.objid::bigint = object::bigint & 4294967295
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.pid is distinct from pg_backend_pid()
$$;

-- Ends the sessions whose transactions are in the way of token `t`; returns their process ids.
--
-- Who shares the lock entered with the mark, which is older than `t`. Who has it exclusively is raising the mark, to the
-- token in the sequence `raising_…`; until that shows, the session is left alone: the next round knows more.
create or replace function kilit.end_older_sessions(m kilit.mark, t bigint) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  h record;
  raising bigint;
  ended int[] := '{}';
begin
  for h in select * from kilit.lock_holders(1802071145, m.id) where lock_holders.pid is not null loop
    if not h.shared then
      raising := pg_sequence_last_value(format('kilit.raising_%s', m.id)::regclass);
      continue when raising is null or raising <= m.token;
      -- Not yet committed, but it exists, so this one is old.
      if raising > t then perform kilit.refuse_stale(m.id, m.resource, t, raising); end if;
    end if;
    begin
      if pg_terminate_backend(h.pid) then ended := ended || h.pid; end if;
    exception when insufficient_privilege then
      null; -- named by kilit.refuse_blocked
    end;
  end loop;
  return ended;
end $$;

create or replace function kilit.refuse_blocked(class int, object int, resource text, token bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  blockers text;
begin
  select string_agg(case when h.pid is null then format('prepared transaction %L', h.gid)
      else format('session %s of role %s (%s)', h.pid, h.role, coalesce(nullif(h.application, ''), 'no application_name')) end, ', ')
    into blockers from kilit.lock_holders(class, object) h;
  raise exception using errcode = 'KL005',
    message = format('the mark of %L cannot be set to %s: blocked by %s', resource, token, coalesce(blockers, 'a session that ended just now')),
    hint = 'Nothing was changed. ROLLBACK PREPARED what is prepared; let a superuser run pg_terminate_backend(pid), or give the owner of schema kilit the role pg_signal_backend; then try again.';
end $$;
