// The schema of sweep plans must match the list of fields.
#include "harness/sweep/comparison_plan.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

TEST_CASE("every field of a sweep's plan is in its schema, and nothing else") {
  testing::check_fields(ComparisonPlan{}, testing::SchemaPlace("sweep_plan"), "plan",
                        {"schema", "id"});
}

}  // namespace
}  // namespace rematch
