-- Reads a token: plain decimal from 1 to 10^18 - 1, else null. No sign, no space, no leading zero, no exponent: what
-- is not exactly a token was probably read from the wrong place.
create or replace function kilit.parse_token(token text) returns bigint
language sql immutable parallel safe
return case when token ~ '^[1-9][0-9]{0,17}$' then token::bigint end;

-- Name of the transaction-local setting that says which token entered. From the resource's name and not from its id,
-- so that a dump of a protected table can be restored beside other marks.
create or replace function kilit.setting_of(resource text) returns text
language sql immutable
return 'kilit.entered_' || left(encode(sha256(convert_to(resource, 'UTF8')), 'hex'), 32);

-- The token with which this transaction entered, or null. Useful as a column's default.
create or replace function kilit.entered(resource text) returns bigint
language sql stable
return case
  when split_part(current_setting(kilit.setting_of(resource), true), ':', 1) = pg_current_xact_id_if_assigned()::text
  then nullif(split_part(current_setting(kilit.setting_of(resource), true), ':', 2), '0')::bigint
end;

create or replace function kilit.check_resource(resource text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if resource is null or resource = '' or length(resource) > 317 or resource ~ '[\u0001-\u001f\u007f]'
    -- In a database that knows no encoding they are parts of letters.
    or (case when getdatabaseencoding() = 'UTF8' then resource ~ '[\u0080-\u009f]' end) then
    raise exception using errcode = 'KL002',
      message = format('invalid resource %s: it must have 1 to 317 characters and no control characters', coalesce(quote_literal(left(resource, 80)), 'null')),
      hint = 'By convention it is NAMESPACE/LOCK, such as shop/billing.';
  end if;
end $$;

create or replace function kilit.refuse_invalid(resource text, token text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = 'KL002',
    message = format('invalid fencing token %s for %L: it must be a decimal integer from 1 to 999999999999999999', coalesce(quote_literal(left(token, 80)), 'null'), resource),
    hint = 'Pass FENCING_TOKEN as it is, as text or as a 64-bit integer. Without one the program does not hold the lock.';
end $$;

-- Adds the mark of a new resource; harmless when it is there.
--
-- The advisory lock lets kilit.seal find out who keeps it waiting. Two counters, and the token that is about to be the
-- mark (kilit.raise_mark), are sequences because nothing else in PostgreSQL outlives a rollback or is seen before a commit.
create or replace function kilit.add_mark(resource text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  added int;
begin
  perform kilit.check_resource(add_mark.resource);
  if exists (select from kilit.mark where mark.resource = add_mark.resource) then return; end if;
  perform pg_advisory_xact_lock(1802071146, hashtext(add_mark.resource));
  insert into kilit.mark (resource, setting) values (add_mark.resource, kilit.setting_of(add_mark.resource))
    on conflict do nothing returning mark.id into added;
  if added is not null then
    execute format('create sequence kilit.refused_%s', added);
    execute format('create sequence kilit.observed_%s', added);
    execute format('create sequence kilit.raising_%s minvalue 0', added);
  end if;
end $$;

-- Not in a read-only transaction (and on a standby): there the refusal itself is all that can be said.
create or replace function kilit.count_refused(mark_id int) returns void
language sql volatile set search_path = pg_catalog, pg_temp
as $$
  select nextval(format('kilit.refused_%s', mark_id)::regclass) where current_setting('transaction_read_only') = 'off'
$$;

-- Counts and notes a write that `observe` mode lets pass.
create or replace function kilit.note_observed(mark_id int, kind text, token text, table_name text default null) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  m kilit.mark;
begin
  perform nextval(format('kilit.observed_%s', mark_id)::regclass);
  select * into m from kilit.mark where mark.id = mark_id;
  raise warning 'kilit would refuse this write for % (%): token %, the newest seen is %', quote_literal(m.resource), kind, coalesce(left(token, 80), 'none'), m.token;
  perform kilit.note_refusal(m.resource, kind, token, m.token, table_name);
end $$;

-- Keeps the newest 10,000 rows. Locked rows are passed over: noting never waits for another transaction.
create or replace function kilit.note_refusal(resource text, kind text, token text, mark bigint, table_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  added bigint;
begin
  insert into kilit.refusal (resource, kind, token, mark, table_name)
    values (note_refusal.resource, note_refusal.kind, left(note_refusal.token, 80), note_refusal.mark, note_refusal.table_name)
    returning refusal.id into added;
  begin
    delete from kilit.refusal r where r.id in (
      select old.id from kilit.refusal old where old.id <= added - 10000 order by old.id limit 100 for update skip locked);
  exception when serialization_failure then
    null; -- another has deleted them since this transaction's snapshot
  end;
end $$;
