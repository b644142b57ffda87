// Tests that the schema of sweep plans matches the list of fields in the code.
#include "harness/sweep/comparison_plan.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

TEST_CASE("the schema of sweep plans has exactly the fields of the C++ structs") {
  testing::check_fields(ComparisonPlan{}, testing::SchemaPlace("sweep_plan"), "plan",
                        {"schema", "id"});
}

}  // namespace
}  // namespace rematch
