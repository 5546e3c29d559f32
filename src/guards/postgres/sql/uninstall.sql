-- Removes the guard from this database: protection of all tables, marks, refusals. Nothing refuses an old token afterwards.
-- The roles go too unless another database of this server or a grant still needs them.

drop event trigger if exists kilit_new_children;
drop schema if exists kilit cascade;

do $$
declare
  role text;
begin
  foreach role in array array['kilit_admin', 'kilit_writer', 'kilit_reader'] loop
    begin
      execute format('drop role if exists %I', role);
    exception when dependent_objects_still_exist or insufficient_privilege then
      raise notice 'kilit: role % stays: %', role, sqlerrm;
    end;
  end loop;
end $$;
