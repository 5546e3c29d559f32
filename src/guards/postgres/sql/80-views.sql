create or replace function kilit.count_of(counter text, mark_id int) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select coalesce(pg_sequence_last_value(format('kilit.%s_%s', counter, mark_id)::regclass), 0) $$;

create or replace view kilit.marks as
  select m.resource, m.token, m.mode, m.raised_at, m.raised_by, m.sealed_at,
      kilit.count_of('refused', m.id) as refused, kilit.count_of('observed', m.id) as observed
    from kilit.mark m;
comment on view kilit.marks is 'Greatest token seen for each resource; how many writes were refused, and in observe mode would have been';

create or replace view kilit.refusals as
  select r.at, r.resource, r.kind, r.token, r.mark, r.table_name, r.role, r.application, r.client, r.pid from kilit.refusal r;
comment on view kilit.refusals is 'Refused writes that the client reported, with both tokens, and what observe mode let pass; the newest 10,000';

create or replace view kilit.changes as
  select c.at, c.resource, c.what, c.old_value, c.new_value, c.reason, c.role, c.client from kilit.change c;
comment on view kilit.changes is 'Marks and modes that people set by hand, and why';

create or replace view kilit.protections as
  select format('%I.%I', n.nspname, c.relname) as table_name, kilit.protected_by(g.tgrelid::regclass) as resource,
      case
        when not bool_and(g.tgenabled in ('O', 'A')) then 'disabled'
        when not bool_or(g.tgtype & 1 = 0) then 'incomplete'
        when not bool_or(g.tgtype & 1 = 1) and (c.relkind = 'p' or exists (select from pg_catalog.pg_inherits i where c.oid in (i.inhrelid, i.inhparent))) then 'incomplete'
        else 'enabled'
      end as state
    from pg_catalog.pg_trigger g join pg_catalog.pg_class c on c.oid = g.tgrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where g.tgfoid = 'kilit.check_write'::regproc
    group by g.tgrelid, c.oid, c.relname, c.relkind, n.nspname;
comment on view kilit.protections is 'Protected tables and partitions; disabled or incomplete ones refuse nothing or not all';
