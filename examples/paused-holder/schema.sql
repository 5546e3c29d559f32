-- For an administrator, once for each database, after kilit's own SQL (kilit guard postgres sql).
-- The roles billing_owner (owns the tables, nologin) and billing (the program) are there already.
grant kilit_writer to billing_owner, billing;
grant create on schema public to billing_owner;

-- Not the role of the program: the owner of a table can switch its protection off.
set role billing_owner;

create table customer (
  id int primary key,
  name text not null,
  cents int not null
);

-- A ledger: rows are added, never changed. Nothing in it forbids a second charge of the same customer and month.
create table charge (
  id bigint generated always as identity primary key,
  month text not null,
  customer int not null references customer,
  cents int not null,
  token bigint not null,                                      -- only for the reader: the guard does not need it
  written_by text not null default current_setting('application_name')
);

grant select on customer, charge to billing;
grant insert on charge to billing;

insert into customer (id, name, cents)
  values (1, 'Ada', 1900), (2, 'Bela', 4900), (3, 'Cleo', 1900), (4, 'Dora', 9900), (5, 'Emil', 1900), (6, 'Fay', 4900);

-- From now on every write to the ledger needs kilit.enter(resource, token) in the same transaction.
select kilit.protect('charge', 'shop/billing');

reset role;
