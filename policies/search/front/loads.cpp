#include "policies/search/front/loads.h"

#include <algorithm>
#include <utility>

#include "policies/base/json.h"
#include "policies/base/schema.h"
#include "policies/search/front/loads_fields.h"

namespace rematch {
namespace {

// A load that fits has every figure, any other has none.
void require_whole(const JsonField& field, const LoadPlan& plan) {
  const bool fits = plan.tokens_per_second.has_value();
  if (fits != plan.tokens_per_second_all_ranks.has_value() || fits != plan.step_time.has_value() ||
      fits != plan.peak.has_value() || fits != plan.num_recomputed.has_value()) {
    field.fail("has some of a plan's figures; it needs all of them, or null for each");
  }
}

void require_tried(const JsonField& answer, const LoadsRecord& record) {
  if (answer.is_null()) return;
  const bool is_tried = std::any_of(record.tried.begin(), record.tried.end(),
                                    [load = answer.integer()](const LoadPlan& plan) {
                                      return plan.load == load && plan.tokens_per_second;
                                    });
  if (!is_tried) answer.fail("is no load among \"tried\" that fits");
}

}  // namespace

void add_loads(const LargestLoad& found, std::map<std::int64_t, LoadPlan> plans,
               LoadsRecord& record) {
  record.is_complete = found.is_complete;
  record.largest = found.largest;
  record.best = found.best;
  for (const TriedLoad& tried : found.tried) {
    LoadPlan& plan = record.tried.emplace_back();
    if (tried.tokens_per_second) plan = std::move(plans.at(tried.load));
    plan.load = tried.load;
  }
}

Json loads_to_json(const LoadsRecord& record) {
  Json json = {{"schema", schema_name(kLoadsSchema)}};
  write_fields(json, record);
  return json;
}

LoadsRecord loads_from_json(const Json& json) {
  require_schema(json, kLoadsSchema.kind);
  const JsonField root(json);
  LoadsRecord record;
  read_fields(root, record);
  root.at("num_batches").integer32(1);
  root.at("world").integer32(record.num_batches);
  for (std::size_t index = 0; index < record.tried.size(); ++index) {
    require_whole(root.at("tried").at(index), record.tried[index]);
  }
  require_tried(root.at("largest_that_fits"), record);
  require_tried(root.at("best"), record);
  if (record.largest.has_value() != record.best.has_value()) {
    root.at("best").fail("and \"largest_that_fits\" are loads, or null both");
  }
  return record;
}

}  // namespace rematch
