// Tests that the schemas of traces, profiles and plans agree with the lists of fields.
#include "policies/plan/block_choice.h"
#include "policies/plan/plan_fields.h"
#include "policies/plan/plan_json.h"
#include "policies/plan/policy_fields.h"
#include "policies/trace/profile_fields.h"
#include "policies/trace/trace_fields.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

using testing::check_fields;
using testing::SchemaPlace;

TEST_CASE("the schema of traces has exactly the fields of a trace") {
  const SchemaPlace trace("trace");
  check_fields(Trace{}, trace, "trace", {"schema", "types", "backward_types", "backward"},
               {"recorded", "spans", "segments"});
  check_fields(SpanType{}, trace.at("/properties/types/items"), "types",
               {"storage_bytes", "storage_freed_at"});
  check_fields(TraceSpan{}, trace.at("/properties/spans/items"), "spans");
  check_fields(BackwardRun{}, trace.at("/properties/backward/items"), "backward");
}

TEST_CASE("the schema of profiles has exactly the fields of a profile") {
  const SchemaPlace profile("profile");
  check_fields(Profile{}, profile, "profile", {"schema", "forward", "backward"});
  check_fields(OpFigures{}, profile.at("/definitions/pass/properties/types/items"), "types");
}

TEST_CASE("the schema of plans has exactly the fields of a plan") {
  check_fields(Plan{}, SchemaPlace("plan"), "plan", {"schema"});
}

TEST_CASE("the schema of policies has exactly the fields of a policy") {
  const SchemaPlace policy("policy");
  check_fields(Policy{}, policy, "policy", {"schema"});
}

TEST_CASE("the policy schema lists exactly the rules that choose blocks") {
  const SchemaPlace blocks = SchemaPlace("policy").at("/properties/blocks");
  std::set<std::string> words, with_argument;
  for (const BlockRule& rule : kBlockRules) {
    (rule.argument == ChoiceArgument::kNone ? words : with_argument).emplace(rule.name);
  }
  CHECK(blocks.at("/oneOf/0").names("enum") == words);
  CHECK(blocks.at("/oneOf/1").names("properties") == with_argument);
}

}  // namespace
}  // namespace rematch
