-- Says with which token this transaction writes to the resource: call it first in every transaction. Returns the token.
--
-- Guarantees: after it has returned, no transaction with another token can enter before this one has ended, and every
-- accepted write of an older token was committed before. So accepted writes never go back to an older token.
--
-- How: a transaction-level advisory lock, shared while the token equals the mark (a holder's connections run side by
-- side), exclusive to raise it; PostgreSQL serves such locks in order, so a busy stale holder cannot starve a newer one.
-- Only then the mark is read again. Above READ COMMITTED the snapshot may be older than the lock, so there the row is
-- locked as well, which fails with 40001 if the mark changed since. In READ COMMITTED that row lock would add nothing
-- but a multixact for each pair of overlapping transactions.
--
-- Errors: KL001 stale token, KL002 invalid token or resource, KL003 jump of more than 10^15, 40001 try the whole
-- transaction again (the mark changed after this transaction's snapshot).
create or replace function kilit.enter(resource text, token text) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  same int;
  snapshot_is_new boolean;
  waited text;
  entered text;
begin
  -- The usual case, the token is the mark, in as few expressions as possible: PL/pgSQL prepares each again in every
  -- transaction, and together they cost more than all else here.
  select m.id, current_setting('transaction_isolation') = 'read committed', pg_advisory_xact_lock_shared(1802071145, m.id)
    into same, snapshot_is_new, waited from kilit.mark m
    where m.resource = enter.resource and m.token::text = enter.token and m.mode = 'enforce';
  if same is not null then
    if not snapshot_is_new then
      perform from kilit.mark m where m.id = same for share;
    end if;
    select set_config(m.setting, pg_current_xact_id()::text || ':' || enter.token, true) into entered
      from kilit.mark m where m.id = same and m.token::text = enter.token;
    if entered is not null then return enter.token; end if;
  end if;
  return kilit.enter_anew(enter.resource, enter.token);
end $$;

-- Every other case.
create or replace function kilit.enter_anew(resource text, token text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  t bigint := kilit.parse_token(enter_anew.token);
  m kilit.mark;
begin
  select * into m from kilit.mark where mark.resource = enter_anew.resource;
  if not found then
    if t is null then perform kilit.refuse_invalid(enter_anew.resource, enter_anew.token); end if;
    perform kilit.add_mark(enter_anew.resource);
    select * into m from kilit.mark where mark.resource = enter_anew.resource;
    if not found then
      raise serialization_failure using message = format('the mark of %L was added after this transaction''s snapshot; try again', enter_anew.resource);
    end if;
  end if;
  if m.mode = 'observe' then
    perform kilit.check_snapshot(m.id);
    return kilit.enter_observed(m, t, enter_anew.token);
  end if;
  if t is null then perform kilit.refuse_invalid(enter_anew.resource, enter_anew.token); end if;
  if t < m.token then perform kilit.refuse_stale(m.id, enter_anew.resource, t, m.token); end if;
  -- Before it waits: a wrong token must not make others wait behind it.
  perform kilit.refuse_jump(enter_anew.resource, t, m.token);

  if t > m.token then
    -- In a block that can be undone: who finds the mark raised already must not keep the lock exclusively, since then
    -- kilit.seal would take it for one that is about to raise the mark, and could not end its session.
    begin
      perform pg_advisory_xact_lock(1802071145, m.id);
      m.token := kilit.mark_now(m.id);
      if t < m.token then perform kilit.refuse_stale(m.id, enter_anew.resource, t, m.token); end if;
      if t = m.token then raise exception using errcode = 'KL099'; end if;
      perform kilit.raise_mark(m.id, enter_anew.resource, t, m.token, sealed => false);
    exception when sqlstate 'KL099' then
      null;
    end;
  end if;
  if t = m.token then
    perform pg_advisory_xact_lock_shared(1802071145, m.id);
    m.token := kilit.mark_now(m.id);
    if t < m.token then perform kilit.refuse_stale(m.id, enter_anew.resource, t, m.token); end if;
    if t > m.token then
      raise serialization_failure using message = format('the mark of %L was reset while this transaction waited; try again', enter_anew.resource);
    end if;
  end if;
  perform set_config(m.setting, pg_current_xact_id()::text || ':' || t::text, true);
  return t;
end $$;

-- The mark as it is now, for who has its advisory lock. Above READ COMMITTED, where the snapshot may be older than the lock,
-- fails with 40001 if it was changed since.
create or replace function kilit.mark_now(mark_id int) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  token bigint;
begin
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    select m.token into token from kilit.mark m where m.id = mark_id;
  else
    select m.token into token from kilit.mark m where m.id = mark_id for share;
  end if;
  return token;
end $$;

-- Fails with 40001 if mark or mode were changed after this transaction's snapshot. Keeps no lock. In `observe` mode: what
-- lets everything pass must not be the mode of a time that is over.
create or replace function kilit.check_snapshot(mark_id int) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  -- A row cannot be locked in a read-only transaction, which writes nothing.
  if current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
    or current_setting('transaction_read_only') = 'on' then return; end if;
  perform from kilit.mark m where m.id = mark_id for share skip locked;
  raise exception using errcode = 'KL099';
exception when sqlstate 'KL099' then
  null;
end $$;

create or replace function kilit.enter(resource text, token bigint) returns bigint
language sql volatile
as $$ select kilit.enter(resource, token::text) $$;

create or replace function kilit.refuse_stale(mark_id int, resource text, token bigint, mark bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform kilit.count_refused(mark_id);
  raise exception using errcode = 'KL001',
    message = format('stale fencing token %s for %L: the newest seen is %s', token, resource, mark),
    detail = json_build_object('resource', resource, 'token', token::text, 'mark', mark::text)::text,
    hint = 'A newer holder of the lock has written or sealed. This process is no longer the holder; let it exit. If every holder is refused, the revisions of the cluster went back (a restore of etcd): raise its token base.';
end $$;

create or replace function kilit.refuse_jump(resource text, token bigint, mark bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if token - mark > 1000000000000000 then
    raise exception using errcode = 'KL003',
      message = format('fencing token %s for %L jumps more than 10^15 above the newest seen, %s', token, resource, mark),
      hint = 'A token so far ahead is probably not one, and would shut out every later holder. If it is right, a member of kilit_admin may run kilit.reset(resource, token, reason).';
  end if;
end $$;

-- Raises the mark; the caller has the exclusive advisory lock.
create or replace function kilit.raise_mark(mark_id int, resource text, token bigint, mark bigint, sealed boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform kilit.refuse_jump(resource, token, mark);
  -- Tells kilit.seal of another session, before the commit, which token is about to be the mark.
  perform setval(format('kilit.raising_%s', mark_id)::regclass, token);
  perform kilit.commit_durably();
  update kilit.mark m set token = raise_mark.token, raised_at = clock_timestamp(), raised_by = session_user,
      sealed_at = case when sealed then clock_timestamp() end
    where m.id = mark_id;
end $$;

-- A mark that a crash or a failover forgets lets the former holder write again. So the transaction that changes one is
-- never committed asynchronously, whatever the session asks for; all others are as they were.
create or replace function kilit.commit_durably() returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

-- `observe` mode: the same judgement, but nothing waits and nothing is refused.
create or replace function kilit.enter_observed(m kilit.mark, t bigint, token text) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if t is null then
    perform kilit.note_observed(m.id, 'observed-invalid', token);
  elsif t < m.token then
    perform kilit.note_observed(m.id, 'observed-stale', token);
  elsif t - m.token > 1000000000000000 then
    perform kilit.note_observed(m.id, 'observed-jump', token);
  elsif t > m.token then
    begin
      update kilit.mark o set token = t, raised_at = clock_timestamp(), raised_by = session_user, sealed_at = null
        where o.id in (select id from kilit.mark where id = m.id and mark.token < t for update skip locked);
    exception when serialization_failure then
      null; -- raised by another since the snapshot
    end;
  end if;
  perform set_config(m.setting, pg_current_xact_id()::text || ':' || coalesce(t, m.token)::text, true);
  return coalesce(t, m.token);
end $$;
