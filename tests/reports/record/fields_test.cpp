// Checks that the schemas of reports, compare and gate match the lists of fields.
#include <string>

#include "policies/base/field_value.h"
#include "policies/trace/by_phase.h"
#include "reports/record/gate.h"
#include "reports/record/report.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

using testing::check_fields;
using testing::SchemaPlace;

TEST_CASE("the schema of points has exactly the fields of a point") {
  check_fields(PointRecord{}, SchemaPlace("point").at("/definitions/point"), "point",
               {"key", "model", "plan_sha256", "schedule", "counted_steps", "counts", "ops"});
}

TEST_CASE("the report schema has exactly the fields of the C++ structs of a report's other parts") {
  check_fields(Provenance{}, SchemaPlace("point"), "point file",
               {"schema", "fingerprint", "point"});
  const SchemaPlace report("report");
  check_fields(RepeatRecord{}, report.at("/properties/reference_repeats/items"), "repeats");
  check_fields(PlannedPoint{}, report.at("/properties/planned/items"), "planned");
  check_fields(UnmeasuredComparison{}, report.at("/properties/unmeasured/items"), "unmeasured");
}

TEST_CASE("the schema of compare records has exactly the fields of the C++ structs") {
  check_fields(CompareRecord{}, SchemaPlace("compare"), "compare", {"schema"});
}

TEST_CASE("the schema of gate records has exactly the fields of the C++ structs") {
  check_fields(GateRecord{}, SchemaPlace("gate"), "gate", {"schema"});
}

}  // namespace
}  // namespace rematch
