-- Lets a write pass if its transaction has entered. The path of every write, so: no SET clause, and therefore every name and
-- operator qualified (it runs with the rights of the schema's owner). A WHEN clause instead would be parsed and planned
-- again in every statement: 25 microseconds against 2.
--
-- Arguments: the resource, and the setting that says "entered".
create or replace function kilit.check_write() returns trigger
language plpgsql security definer as $$
begin
  if pg_catalog.split_part(pg_catalog.current_setting(tg_argv[1], true), ':', 1)
      operator(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text then
    return null;
  end if;
  perform kilit.refuse_write(tg_op, tg_table_schema, tg_table_name, tg_argv[0]);
  return null;
end $$;

create or replace function kilit.refuse_write(operation text, table_schema text, table_name text, resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  m kilit.mark;
  target text := format('%I.%I', table_schema, table_name);
begin
  select * into m from kilit.mark where mark.resource = refuse_write.resource;
  if m.mode = 'observe' then
    perform kilit.check_snapshot(m.id);
    perform kilit.note_observed(m.id, 'observed-not-entered', null, target);
    perform set_config(m.setting, pg_current_xact_id()::text || ':0', true); -- once for each transaction is enough
    return;
  end if;
  if m.id is not null then perform kilit.count_refused(m.id); end if;
  raise exception using errcode = 'KL004',
    message = format('%s on %s refused: this transaction has not entered %L', operation, target, resource),
    detail = json_build_object('resource', resource, 'table', target)::text,
    hint = format('Begin the transaction with: select kilit.enter(%L, TOKEN).', resource);
end $$;

-- Makes a table refuse every write of a transaction that did not enter the resource: INSERT, UPDATE, DELETE, MERGE, COPY,
-- TRUNCATE, cascades. By the table's owner, who must be a member of kilit_writer. Repeating it is harmless.
--
-- A statement trigger does it. In a tree of partitions or inheritors a row trigger is needed as well, since there a write
-- fires the statement triggers of the table that it names only. It is an AFTER trigger with a WHEN, so that COPY stays fast.
create or replace function kilit.protect(target regclass, resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  kind "char" := (select c.relkind from pg_class c where c.oid = target);
begin
  perform kilit.check_resource(protect.resource);
  if target is null or kind is null or kind not in ('r', 'p', 'f') then -- 'f': kilit.check_tree says why not
    raise exception using errcode = 'KL002', message = format('%s is not a table', coalesce(target::text, 'null')),
      hint = 'Protect the tables below a view.';
  end if;
  perform kilit.check_tree(target, protect.resource);
  perform kilit.add_mark(protect.resource);
  perform kilit.protect_tree(target, protect.resource);
end $$;

-- Refuses a tree that one resource cannot protect as a whole.
--
-- A foreign table's write is committed by another server, which knows no mark: its COMMIT may come after a newer holder's.
create or replace function kilit.check_tree(target regclass, resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  f regclass;
  other record;
begin
  select t into f from kilit.table_tree(target) t join pg_class c on c.oid = t where c.relkind = 'f' limit 1;
  if f is not null then
    raise exception using errcode = 'KL002', message = format('%s is a foreign table, which the guard cannot protect', f),
      hint = 'Install the guard in the database that has the table, protect it there, and write to it there.';
  end if;
  select t as rel, r as resource into other from kilit.table_tree(target) t, kilit.resources_of(t) r
    where r <> check_tree.resource limit 1;
  if other.rel is not null then
    raise exception using errcode = 'KL002', message = format('table %s is already protected by %L', other.rel, other.resource),
      hint = format('A table and its children are protected by one resource. Run first: select kilit.unprotect(%L).', other.rel::text);
  end if;
end $$;

-- Adds the triggers that are missing on a table, its partitions and its inheritors.
create or replace function kilit.protect_tree(target regclass, resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  setting text := kilit.setting_of(protect_tree.resource);
  t regclass;
begin
  for t in select kilit.table_tree(target) loop
    if not exists (select from pg_trigger g where g.tgrelid = t and g.tgfoid = 'kilit.check_write'::regproc and g.tgtype & 1 = 0) then
      execute format('create trigger kilit_statement before insert or update or delete or truncate on %s for each statement execute function kilit.check_write(%L, %L)',
        t, protect_tree.resource, setting);
    end if;
    -- Partitions get theirs from the parent, also those that are added later. Each has a name of its own, since a table with
    -- a trigger of the same name as its new parent's cannot be attached.
    if (exists (select from pg_inherits i where t in (i.inhrelid, i.inhparent)) or exists (select from pg_class c where c.oid = t and c.relkind = 'p'))
      and not exists (select from pg_trigger g where g.tgrelid = t and g.tgfoid = 'kilit.check_write'::regproc and g.tgtype & 1 = 1) then
      execute format('create trigger kilit_row_%4$s after insert or update or delete on %1$s for each row when (coalesce(split_part(current_setting(%2$L, true), '':'', 1), '''') <> coalesce(pg_current_xact_id_if_assigned()::text, ''-'')) execute function kilit.check_write(%3$L, %2$L)',
        t, setting, protect_tree.resource, t::oid);
    end if;
  end loop;
end $$;

-- Parents first.
create or replace function kilit.table_tree(target regclass) returns setof regclass
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with recursive tree (rel, depth) as (
    select target::oid, 0
    union all
    select i.inhrelid, tree.depth + 1 from pg_inherits i join tree on i.inhparent = tree.rel
  )
  select rel::regclass from tree group by rel order by max(depth), rel
$$;

-- The resources that protect a table: one, unless children were attached where no event trigger saw it.
create or replace function kilit.resources_of(target regclass) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- tgargs: each argument ends with a zero byte.
  select distinct convert_from(substring(g.tgargs from 1 for position('\x00'::bytea in g.tgargs) - 1), getdatabaseencoding())
    from pg_trigger g where g.tgrelid = target and g.tgfoid = 'kilit.check_write'::regproc
$$;

-- The resource that protects a table, or null.
create or replace function kilit.protected_by(target regclass) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$ select min(r) from kilit.resources_of(target) r $$;

-- Takes the protection from a table, its partitions and its inheritors.
create or replace function kilit.unprotect(target regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  g record;
begin
  if kilit.protected_by(target) is null then
    raise exception using errcode = 'KL002', message = format('table %s is not protected', coalesce(target::text, 'null'));
  end if;
  for g in
    select t.tgrelid::regclass as rel, t.tgname from pg_trigger t
      where t.tgrelid in (select kilit.table_tree(target)) and t.tgfoid = 'kilit.check_write'::regproc and t.tgparentid = 0
  loop
    execute format('drop trigger %I on %s', g.tgname, g.rel);
  end loop;
end $$;

-- Row triggers reach a new partition by themselves; the statement trigger (TRUNCATE of one partition, statements
-- without rows), a new inheritor, and a protected table that gets a parent, need this event trigger, which only a superuser
-- may create.
create or replace function kilit.protect_new_children() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  t record;
begin
  for t in
    with recursive changed (rel) as (
      select distinct c.objid from pg_event_trigger_ddl_commands() c where c.object_type in ('table', 'foreign table')
    ), up (rel) as (
      select rel from changed
      union
      select i.inhparent from pg_inherits i join up on i.inhrelid = up.rel
    ), down (rel) as (
      select rel from changed
      union
      select i.inhrelid from pg_inherits i join down on i.inhparent = down.rel
    )
    select x.rel::regclass as rel, r as resource
      from (select rel from up union select rel from down) x, kilit.resources_of(x.rel::regclass) r
  loop
    perform kilit.check_tree(t.rel, t.resource);
    begin
      perform kilit.protect_tree(t.rel, t.resource);
    exception when insufficient_privilege then
      raise warning 'kilit could not protect the new partitions of %: run kilit.protect(%, %) as the owner of the table',
        t.rel, quote_literal(t.rel::text), quote_literal(t.resource);
    end;
  end loop;
end $$;

do $$
begin
  begin
    drop event trigger if exists kilit_new_children;
    create event trigger kilit_new_children on ddl_command_end
      when tag in ('CREATE TABLE', 'ALTER TABLE', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'CREATE SCHEMA')
      execute function kilit.protect_new_children();
  exception when insufficient_privilege then
    if not exists (select from pg_event_trigger e where e.evtname = 'kilit_new_children') then
      raise notice 'kilit: no event trigger (only a superuser may create one). After adding a partition to a protected table, or attaching a protected table to another, run kilit.protect(table, resource) of the parent again; until then TRUNCATE of that partition alone, or writes through that parent, are not refused.';
    end if;
  end;
end $$;
