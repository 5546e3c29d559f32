-- Sets the mark to any token, also a smaller one: after a restore, or when a wrong token got in. Recorded with reason.
--
-- Lowering it lets older holders write again: make sure first that they are gone.
create or replace function kilit.reset(resource text, token text, reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  t bigint := kilit.parse_token(reset.token);
  m kilit.mark;
begin
  perform kilit.check_resource(reset.resource);
  if t is null then perform kilit.refuse_invalid(reset.resource, reset.token); end if;
  perform kilit.check_reason(reset.reason);
  perform kilit.add_mark(reset.resource);
  select * into m from kilit.mark where mark.resource = reset.resource;
  if not kilit.lock_within(1802071145, m.id, interval '10 seconds') then
    perform kilit.refuse_blocked(kilit.lock_holders(1802071145, m.id), reset.resource, t);
  end if;
  if not kilit.row_free_within(m.id, interval '10 seconds') then
    perform kilit.refuse_blocked(kilit.row_holders(m.id), reset.resource, t);
  end if;
  select * into m from kilit.mark where mark.resource = reset.resource for update;
  update kilit.mark set token = t, raised_at = clock_timestamp(), raised_by = session_user, sealed_at = null where mark.id = m.id;
  perform setval(format('kilit.raising_%s', m.id)::regclass, t);
  perform kilit.commit_durably();
  insert into kilit.change (resource, what, old_value, new_value, reason)
    values (reset.resource, 'token', m.token::text, t::text, reset.reason);
end $$;

create or replace function kilit.reset(resource text, token bigint, reason text) returns void
language sql volatile
as $$ select kilit.reset(resource, token::text, reason) $$;

-- `observe`: stale tokens and writes without enter are counted, logged and let pass, to try the guard on a running
-- program. `enforce`: they are refused. Counts for transactions that enter from then on.
create or replace function kilit.set_mode(resource text, mode text, reason text default 'not given') returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  m kilit.mark;
begin
  perform kilit.check_resource(set_mode.resource);
  perform kilit.check_reason(set_mode.reason);
  if set_mode.mode is null or set_mode.mode not in ('enforce', 'observe') then
    raise exception using errcode = 'KL002', message = format('invalid mode %s: it must be ''enforce'' or ''observe''', coalesce(quote_literal(set_mode.mode), 'null'));
  end if;
  perform kilit.add_mark(set_mode.resource);
  select * into m from kilit.mark where mark.resource = set_mode.resource;
  if not kilit.row_free_within(m.id, interval '10 seconds') then
    perform kilit.refuse_blocked(kilit.row_holders(m.id) || kilit.lock_holders(1802071145, m.id), set_mode.resource, m.token);
  end if;
  select * into m from kilit.mark where mark.resource = set_mode.resource for update;
  if m.mode = set_mode.mode then return; end if;
  update kilit.mark set mode = set_mode.mode where mark.id = m.id;
  perform kilit.commit_durably();
  insert into kilit.change (resource, what, old_value, new_value, reason)
    values (set_mode.resource, 'mode', m.mode, set_mode.mode, set_mode.reason);
end $$;

create or replace function kilit.check_reason(reason text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if reason is null or btrim(reason) = '' or length(reason) > 1000 then
    raise exception using errcode = 'KL002', message = 'invalid reason: say in 1 to 1000 characters why';
  end if;
end $$;

-- Notes a refusal with both tokens. The refused transaction itself is rolled back and can note nothing, so the client
-- calls this afterwards, in a transaction of its own. What is not stale is not noted.
create or replace function kilit.report_refusal(resource text, token text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  m kilit.mark;
begin
  select * into m from kilit.mark where mark.resource = report_refusal.resource;
  if kilit.parse_token(report_refusal.token) < m.token then
    perform kilit.note_refusal(m.resource, 'stale', report_refusal.token, m.token, null);
  end if;
end $$;

create or replace function kilit.report_refusal(resource text, token bigint) returns void
language sql volatile
as $$ select kilit.report_refusal(resource, token::text) $$;
