#include <cmath>

#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/number_bits.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

// A loss appears twice: equality goes by its bits, tolerances and tables by the number.
void require_same_loss(const JsonField& field, const StepRecord& step) {
  const std::optional<double> value = number_of_bits(step.loss_bits);
  if (!value) field.at("loss_bits").fail("are not the bits of a float32 or float64");
  const bool is_same = std::isfinite(*value) ? step.loss == *value : !step.loss;
  if (!is_same) field.at("loss").fail("is not what \"loss_bits\" says; was the file edited?");
}

}  // namespace

void read_value(const JsonField& field, StepRecord& step) {
  read_fields(field, step);
  require_same_loss(field, step);
}

}  // namespace rematch
