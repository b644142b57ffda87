#include "harness/engine/off_plan_pass.h"

#include <algorithm>

namespace rematch {
namespace {

Bytes bytes_kept(const Record& record) {
  Bytes bytes;
  for (const RecordedValue& value : record.values) {
    if (!value.op.has_value() || !value.kept.defined() || !value.kept.has_storage()) continue;
    bytes += Bytes{static_cast<std::int64_t>(value.kept.storage().nbytes())};
  }
  return bytes;
}

}  // namespace

Keep OffPlanPass::keep_next(const OpFacts& facts) {
  const OptionalIndex planned = alignment_.next(facts.id);
  if (planned.has_value()) return type_.keep[static_cast<std::size_t>(*planned)];
  return facts.collective == CollectivePart::kNothing ? Keep::kNothing : Keep::kOutputs;
}

Departures OffPlanPass::summary(const std::string& region, const Record& record) const {
  return {.region = region,
          .first_difference = difference_,
          .extra_ops = alignment_.num_extra(),
          .missing_ops = alignment_.num_missing(),
          .kept_beyond_plan = std::max(Bytes{}, bytes_kept(record) - type_.kept_bytes)};
}

}  // namespace rematch
