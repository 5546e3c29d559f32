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
  patience interval;
  give_up timestamptz;
begin
  if seal.wait is null or seal.wait < interval '0' or seal.wait > interval '1 minute' then
    raise exception using errcode = 'KL002', message = format('invalid wait %s: it must be from 0 to 1 minute', coalesce(seal.wait::text, 'null'));
  end if;
  perform kilit.check_resource(seal.resource);
  if t is null then perform kilit.refuse_invalid(seal.resource, seal.token); end if;
  patience := kilit.within_statement_timeout(seal.wait);
  give_up := clock_timestamp() + patience + interval '900 milliseconds';
  select * into m from kilit.mark where mark.resource = seal.resource;
  if not found then
    if not kilit.lock_within(1802071146, hashtext(seal.resource), patience) then
      perform kilit.refuse_blocked(kilit.lock_holders(1802071146, hashtext(seal.resource)), seal.resource, t);
    end if;
    perform kilit.add_mark(seal.resource);
    select * into m from kilit.mark where mark.resource = seal.resource;
    if not found then
      raise serialization_failure using message = format('the mark of %L was added after this transaction''s snapshot; try again', seal.resource);
    end if;
  end if;
  if m.mode = 'observe' then
    perform kilit.check_snapshot(m.id);
    perform kilit.enter_observed(m, t, seal.token);
    return 0;
  end if;
  if t = m.token then return 0; end if;
  if t < m.token then perform kilit.refuse_stale(m.id, seal.resource, t, m.token); end if;
  perform kilit.refuse_jump(seal.resource, t, m.token);

  -- In a block that can be undone, as in kilit.enter_anew: what is not raised is not kept locked.
  begin
    while not kilit.lock_within(1802071145, m.id, patience) loop
      if clock_timestamp() > give_up then perform kilit.refuse_blocked(kilit.lock_holders(1802071145, m.id), seal.resource, t, ended); end if;
      ended := ended || kilit.end_older_sessions(m.id, t);
      patience := interval '100 milliseconds';
    end loop;
    -- A change of the mode by hand keeps the row, and so does a transaction that raised the mark in `observe` mode.
    if not kilit.row_free_within(m.id, give_up - clock_timestamp()) then
      perform kilit.refuse_blocked(kilit.row_holders(m.id), seal.resource, t, ended);
    end if;
    m.token := kilit.mark_now(m.id);
    if t < m.token then perform kilit.refuse_stale(m.id, seal.resource, t, m.token); end if;
    if t = m.token then raise exception using errcode = 'KL099'; end if;
    perform kilit.raise_mark(m.id, seal.resource, t, m.token, sealed => true);
  exception when sqlstate 'KL099' then
    null;
  end;
  return (select count(distinct pid) from unnest(ended) pid);
end $$;

-- No longer than half the time that the statement may take: else it would be cancelled each time before it ends anybody.
create or replace function kilit.within_statement_timeout(wait interval) returns interval
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select case when s.setting::int = 0 then wait else least(wait, s.setting::int * interval '0.5 milliseconds') end
    from pg_settings s where s.name = 'statement_timeout'
$$;

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

do $$
begin
  if to_regtype('kilit.lock_holder') is null then
    create type kilit.lock_holder as (pid int, shared boolean, role name, application text, gid text);
  end if;
end $$;

-- Which other transactions have an advisory lock now. A prepared transaction has a gid and no pid.
create or replace function kilit.lock_holders(class int, object int) returns kilit.lock_holder[]
language sql volatile set search_path = pg_catalog, pg_temp
as $$
  select array_agg(row(l.pid, l.mode = 'ShareLock', a.usename, a.application_name, p.gid)::kilit.lock_holder)
    from pg_locks l
    left join pg_stat_activity a on a.pid = l.pid
    left join pg_locks x on l.pid is null and x.pid is null and x.locktype = 'transactionid' and x.virtualtransaction = l.virtualtransaction
    left join pg_prepared_xacts p on p.transaction = x.transactionid
    where l.locktype = 'advisory' and l.granted and l.objsubid = 2
      and l.classid::bigint = class and l.objid::bigint = object::bigint & 4294967295
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.pid is distinct from pg_backend_pid()
$$;

-- Which other transaction has changed a mark and not ended yet.
create or replace function kilit.row_holders(mark_id int) returns kilit.lock_holder[]
language sql volatile set search_path = pg_catalog, pg_temp
as $$
  select array_agg(row(l.pid, false, a.usename, a.application_name, p.gid)::kilit.lock_holder)
    from kilit.mark m
    join pg_locks l on l.locktype = 'transactionid' and l.transactionid = m.xmax and l.granted
    left join pg_stat_activity a on a.pid = l.pid
    left join pg_prepared_xacts p on p.transaction = l.transactionid
    where m.id = mark_id and l.pid is distinct from pg_backend_pid()
$$;

-- Waits until no other transaction has the row of a mark; false after `patience`. Keeps no lock: one of a subtransaction
-- would leave a multixact, of which kilit.row_holders cannot tell whose it is.
create or replace function kilit.row_free_within(mark_id int, patience interval) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = 0 as $$
begin
  perform set_config('lock_timeout', greatest(1, ceil(extract(epoch from patience) * 1000))::int::text, true);
  perform from kilit.mark m where m.id = mark_id for update;
  raise exception using errcode = 'KL099';
exception
  when sqlstate 'KL099' then return true;
  when lock_not_available then return false;
end $$;

-- Ends the sessions whose transactions are in the way of token `t`; returns their process ids.
--
-- Who shares the lock entered with what was the mark then, so with an older token as long as the mark, read afterwards, is
-- below `t`. Who has it exclusively is raising the mark, to the token in the sequence `raising_*`; until that shows, the
-- session is left alone: the next round knows more.
create or replace function kilit.end_older_sessions(mark_id int, t bigint) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  holders kilit.lock_holder[] := coalesce(kilit.lock_holders(1802071145, mark_id), '{}');
  h kilit.lock_holder;
  m kilit.mark;
  raising bigint := pg_sequence_last_value(format('kilit.raising_%s', mark_id)::regclass);
  ended int[] := '{}';
begin
  perform kilit.check_snapshot(mark_id);
  select * into m from kilit.mark where mark.id = mark_id;
  if m.token > t then perform kilit.refuse_stale(m.id, m.resource, t, m.token); end if;
  if m.token = t then return ended; end if;
  foreach h in array holders loop
    continue when h.pid is null;
    if not h.shared then
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

create or replace function kilit.refuse_blocked(holders kilit.lock_holder[], resource text, token bigint, ended int[] default '{}') returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  blockers text;
begin
  select string_agg(case when h.pid is null then format('prepared transaction %L', h.gid)
      else format('session %s of role %s (%s)', h.pid, h.role, coalesce(nullif(h.application, ''), 'no application_name')) end, ', ')
    into blockers from unnest(holders) h;
  raise exception using errcode = 'KL005',
    message = format('the mark of %L cannot be set to %s: blocked by %s', resource, token, coalesce(blockers, 'a session that ended just now')),
    detail = case when ended = '{}' then 'No session was ended.' else format('Sessions that were ended: %s.', array_to_string(ended, ', ')) end,
    hint = 'The mark was not changed. Let an administrator who is changing the mark or the mode commit or roll back; ROLLBACK PREPARED what is prepared; let a superuser run pg_terminate_backend(pid), or give the owner of schema kilit the role pg_signal_backend; then try again.';
end $$;
