-- Everything else is for the functions above only.
revoke all on schema kilit from public;
revoke all on all tables in schema kilit from public;
revoke all on all functions in schema kilit from public;
grant usage on schema kilit to kilit_reader;
grant select on kilit.marks, kilit.refusals, kilit.changes, kilit.protections to kilit_reader;
grant execute on function kilit.count_of(text, int), kilit.protected_by(regclass), kilit.resources_of(regclass), kilit.entered(text),
  kilit.setting_of(text), kilit.parse_token(text) to kilit_reader;
grant execute on function kilit.enter(text, text), kilit.enter(text, bigint), kilit.seal(text, text, interval),
  kilit.seal(text, bigint, interval), kilit.report_refusal(text, text),
  kilit.report_refusal(text, bigint) to kilit_writer;
grant execute on function kilit.protect(regclass, text), kilit.unprotect(regclass), kilit.protect_tree(regclass, text),
  kilit.table_tree(regclass), kilit.check_tree(regclass, text), kilit.add_mark(text), kilit.check_resource(text), kilit.check_write() to kilit_writer;
grant execute on function kilit.reset(text, text, text), kilit.reset(text, bigint, text),
  kilit.set_mode(text, text, text) to kilit_admin;
