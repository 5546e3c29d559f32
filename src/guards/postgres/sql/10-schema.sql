-- kilit's guard for PostgreSQL 15 and newer: plain SQL, no extension.
--
-- A guarded resource accepts a write only if its fencing token is at least the mark, the greatest token seen so far, and
-- the comparison, the raising of the mark and the write are one transaction. Run it as a superuser or as the database's
-- owner, once for each database, in one transaction; again to upgrade: marks stay.

do $$
begin
  if current_setting('server_version_num')::int < 150000 then
    raise exception 'kilit needs PostgreSQL 15 or newer, this is %', current_setting('server_version');
  end if;
  -- Two installs at a time would trip over each other's "if not exists".
  perform pg_advisory_xact_lock(1802071146, 0);
end $$;

-- Whoever owns the schema may drop what is in it. A superuser may take over from another.
do $$
declare
  former name := (select r.rolname from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner where n.nspname = 'kilit');
begin
  if former <> current_user
    and (select not bool_and(r.rolsuper) from pg_catalog.pg_roles r where r.rolname in (former, current_user)) then
    raise insufficient_privilege using
      message = format('schema kilit belongs to role %I, not to %I', former, current_user),
      hint = format('If %1$I has installed kilit here, upgrade it as that role: set role %1$I. Else drop the schema first.', former);
  end if;
end $$;

create schema if not exists kilit;
comment on schema kilit is 'Fencing tokens of kilit: kilit.enter() first in each transaction; see kilit.marks, kilit.refusals, kilit.protections';

-- Roles belong to the whole server, so another database may have made them.
--   kilit_reader  sees the views
--   kilit_writer  also enters and seals, and protects the tables that it owns: for programs and for migrations
--   kilit_admin   also resets marks and switches modes: for people
do $$
declare
  role text;
begin
  foreach role in array array['kilit_reader', 'kilit_writer', 'kilit_admin'] loop
    if not exists (select from pg_catalog.pg_roles r where r.rolname = role) then
      begin
        execute format('create role %I nologin', role);
      exception when duplicate_object or unique_violation then
        null; -- by an install in another database, just now
      when insufficient_privilege then
        raise insufficient_privilege using
          message = format('Role %I does not exist, and %I may not create it', role, current_user),
          hint = 'Let an administrator run: create role kilit_reader nologin; create role kilit_writer nologin; create role kilit_admin nologin; grant kilit_reader to kilit_writer; grant kilit_writer to kilit_admin; then install again.';
      end;
    end if;
  end loop;
  begin
    if not pg_has_role('kilit_writer', 'kilit_reader', 'member') then grant kilit_reader to kilit_writer; end if;
  exception when unique_violation then
    null; -- by an install in another database, just now
  end;
  begin
    if not pg_has_role('kilit_admin', 'kilit_writer', 'member') then grant kilit_writer to kilit_admin; end if;
  exception when unique_violation then
    null;
  end;
end $$;
