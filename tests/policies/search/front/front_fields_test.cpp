// Tests that the schema of fronts agrees with the list of fields.
#include "policies/search/front/front_fields.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

TEST_CASE("the schema of fronts has exactly the fields of a front") {
  testing::check_fields(FrontRecord{}, testing::SchemaPlace("front"), "front", {"schema"});
}

}  // namespace
}  // namespace rematch
