-- One row for each guarded resource. Token 0: nothing seen yet.
create table if not exists kilit.mark (
  id int generated always as identity primary key, -- second half of the advisory lock's key (first: 1802071145)
  resource text not null unique,
  setting text not null,                           -- transaction-local setting that says "entered"; see kilit.setting_of
  token bigint not null default 0 check (token between 0 and 999999999999999999),
  mode text not null default 'enforce' check (mode in ('enforce', 'observe')),
  raised_at timestamptz,
  raised_by text,
  sealed_at timestamptz
);

-- What was refused, or would have been (kind `observed-*`). The newest 10,000 rows are kept; the counts in kilit.marks
-- are sequences and count all, since they outlive the rollback of a refused transaction.
create table if not exists kilit.refusal (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  resource text not null,
  kind text not null check (kind in ('stale', 'observed-stale', 'observed-invalid', 'observed-jump', 'observed-not-entered')),
  token text,
  mark bigint not null,
  table_name text,
  role text not null default session_user,
  application text not null default coalesce(current_setting('application_name', true), ''),
  client inet default inet_client_addr(),
  pid int not null default pg_backend_pid()
);

-- What people changed by hand.
create table if not exists kilit.change (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  resource text not null,
  what text not null check (what in ('token', 'mode')),
  old_value text not null,
  new_value text not null,
  reason text not null,
  role text not null default session_user,
  client inet default inet_client_addr()
);
