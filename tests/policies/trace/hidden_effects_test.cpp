#include "policies/trace/hidden_effects.h"

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/trace/trace_json.h"
#include "tests/support/catch.h"
#include "tests/support/schema_check.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Catch::Contains;

const HiddenEffects kEffects = {{{"lib.ops:Rotary", std::vector<int>{0, 1}}, {"lib.ops:Scale", {}}},
                                {{"lib::scale", {2}}},
                                {"lib::noisy"}};

TEST_CASE("hidden effects are merged by name, and their lists are sorted") {
  const HiddenEffects more = {
      {{"lib.ops:Rotary", std::vector<int>{3, 1}}, {"a:B", std::vector<int>{}}},
      {{"lib::scale", {0, 2}}, {"lib::clear", {1}}},
      {"lib::noisy", "lib::counted"}};
  const HiddenEffects all = {{{"a:B", std::vector<int>{}},
                              {"lib.ops:Rotary", std::vector<int>{0, 1, 3}},
                              {"lib.ops:Scale", {}}},
                             {{"lib::clear", {1}}, {"lib::scale", {0, 2}}},
                             {"lib::counted", "lib::noisy"}};
  CHECK(united(kEffects, more) == all);
  CHECK(united(more, kEffects) == all);
  CHECK(united(all, {}) == all);
}

// The function's writes are known from one trace, which ran on data. They are unknown in the other
// trace, which ran on meta, where arguments have no content.
TEST_CASE("a function with unknown writes in one list has unknown writes after the merge") {
  const HiddenEffects known = {{{"a:B", std::vector<int>{0}}}, {}, {}};
  const HiddenEffects unknown = {{{"a:B", {}}}, {}, {}};
  CHECK(united(known, unknown) == unknown);
  CHECK(united(unknown, known) == unknown);
}

TEST_CASE("a trace stores hidden effects at its top level and reads them back") {
  Trace trace = testing::toy_llama({.layers = 2});
  const Json plain = trace_to_json(trace);
  const std::string hash = trace_sha256(trace);
  trace.hidden = kEffects;
  const Json json = trace_to_json(trace);
  CHECK(json["opaque_functions"].dump() == R"([{"name":"lib.ops:Rotary","overwrites":[0,1]},)"
                                           R"({"name":"lib.ops:Scale","overwrites":null}])");
  CHECK(json["silent_writers"].dump() == R"([{"op":"lib::scale","arguments":[2]}])");
  CHECK(json["kept_ops"].dump() == R"(["lib::noisy"])");
  CHECK(trace_from_json(parse_json(json.dump(), "trace")) == trace);
  CHECK(testing::schema_error(json, "trace") == std::nullopt);
  CHECK(trace_sha256(trace) != hash);
  for (const char* key : {"opaque_functions", "silent_writers", "kept_ops"}) {
    CHECK_FALSE(plain.contains(key));
  }
}

TEST_CASE("lists of hidden effects are read in any order") {
  const Json json = {
      {"kept_ops", {"lib::b", "lib::a", "lib::b"}},
      {"silent_writers",
       {{{"op", "lib::a"}, {"arguments", {2, 0}}}, {{"op", "lib::a"}, {"arguments", {1}}}}}};
  const HiddenEffects read = hidden_effects_from_json(json);
  CHECK(read.kept_ops == std::vector<std::string>{"lib::a", "lib::b"});
  CHECK(read.silent_writers == std::vector<SilentWriter>{{"lib::a", {0, 1, 2}}});
}

TEST_CASE("the error for a malformed hidden effect gives its path") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"opaque_functions": [{"name": "Rotary", "overwrites": []}]})",
       "opaque_functions[0].name: 'Rotary' is not a name; write it as 'package.module:Class'"},
      {R"({"opaque_functions": [{"name": ":Rotary", "overwrites": []}]})", "is not a name"},
      {R"({"opaque_functions": [{"name": "lib:", "overwrites": []}]})", "is not a name"},
      {R"({"opaque_functions": [{"name": "a:B"}]})", "key \"overwrites\" is missing"},
      {R"({"opaque_functions": [{"name": "a:B", "overwrites": [-1]}]})",
       "opaque_functions[0].overwrites[0]: -1 is out of range"},
      {R"({"opaque_functions": [{"name": "a:B", "overwrites": 0}]})",
       "opaque_functions[0].overwrites: found 0"},
      {R"({"silent_writers": [{"op": "scale", "arguments": []}]})",
       "silent_writers[0].op: 'scale' is not a name; write it as 'library::op'"},
      {R"({"silent_writers": [{"op": "lib::scale"}]})", "key \"arguments\" is missing"},
      {R"({"kept_ops": ["lib::a", "noisy\n"]})", "kept_ops[1]: 'noisy\\n' is not a name"},
      {R"({"kept_ops": [1]})", "kept_ops[0]: found 1"},
      {R"({"kept_ops": "lib::a"})", "kept_ops: found \"lib::a\""},
  };
  for (const auto& [text, message] : rows) {
    CAPTURE(text);
    CHECK_THROWS_AS(hidden_effects_from_json(parse_json(text, "plan")), FormatError);
    CHECK_THROWS_WITH(hidden_effects_from_json(parse_json(text, "plan")), Contains(message));
  }
}

TEST_CASE("hidden effects are printed one per line") {
  CHECK(lines_of(kEffects) ==
        std::vector<std::string>{"lib.ops:Rotary is one op that writes to arguments 0, 1",
                                 "lib.ops:Scale is one op that writes to any argument",
                                 "lib::scale writes to argument 2",
                                 "lib::noisy cannot be repeated"});
}

}  // namespace
}  // namespace rematch
