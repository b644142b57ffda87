// Tests that the schema of fronts agrees with the list of fields.
#include "policies/search/front/front_fields.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

TEST_CASE("every field of a front is in its schema, and nothing else") {
  testing::check_fields(FrontRecord{}, testing::SchemaPlace("front"), "front", {"schema"});
}

}  // namespace
}  // namespace rematch
