#include "policies/search/loads/loads.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/search/front/front_fields.h"

namespace rematch {
namespace {

class LoadFinder {
 public:
  LoadFinder(const PlanOfLoad& plan_of, const std::function<bool()>& is_stopped,
             LoadsRecord& record)
      : plan_of_(plan_of), is_stopped_(is_stopped), record_(record) {}

  void run() {
    try {
      if (fits(record_.least)) {
        try_between(record_.least, largest());
        refine();
      }
    } catch (const Stopped&) {
      record_.is_complete = false;
    }
    if (!tried_.empty() && tried_.begin()->second.tokens_per_second) record_.best = best()->first;
    for (auto& [load, plan] : tried_) {
      if (plan.tokens_per_second) record_.largest = load;
      record_.tried.push_back(std::move(plan));
    }
  }

 private:
  struct Stopped {};
  using Tried = std::map<std::int64_t, LoadPlan>;  // keyed by load

  bool fits(std::int64_t load) {
    auto tried = tried_.find(load);
    if (tried == tried_.end()) {
      if (is_stopped_()) throw Stopped();
      LoadPlan plan = plan_of_(load).value_or(LoadPlan());
      if (is_stopped_()) throw Stopped();
      plan.load = load;
      tried = tried_.emplace(load, std::move(plan)).first;
    }
    return tried->second.tokens_per_second.has_value();
  }

  std::int64_t largest() {
    if (fits(record_.most)) return record_.most;
    std::int64_t low = record_.least;  // fits
    std::int64_t high = record_.most;  // the smallest known load that does not fit
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  void try_between(std::int64_t low, std::int64_t high) {
    const std::int64_t parts = std::min(high - low, kLoadsAtOnce - 1);
    for (std::int64_t part = 0; part <= parts && parts > 0; ++part) {
      fits(low + (high - low) * part / parts);
    }
  }

  void refine() {
    for (;;) {
      const auto at = best();
      const std::int64_t low = at == tried_.begin() ? at->first : std::prev(at)->first;
      const auto next = std::next(at);
      const bool is_last = next == tried_.end() || !next->second.tokens_per_second;
      const std::int64_t high = is_last ? at->first : next->first;
      const std::size_t before = tried_.size();
      try_between(low, at->first);
      try_between(at->first, high);
      if (tried_.size() == before) return;
    }
  }

  // Returns the load with the highest rate. Loads that do not fit have no rate and come last.
  Tried::const_iterator best() const {
    return std::max_element(tried_.begin(), tried_.end(), [](const auto& a, const auto& b) {
      return a.second.tokens_per_second < b.second.tokens_per_second;
    });
  }

  const PlanOfLoad& plan_of_;
  const std::function<bool()>& is_stopped_;
  LoadsRecord& record_;
  Tried tried_;
};

// Throws FormatError if a load has only some figures. A load that fits must have all figures, and
// any other load must have no figures.
void require_whole(const JsonField& field, const LoadPlan& plan) {
  const bool fits = plan.tokens_per_second.has_value();
  if (fits != plan.tokens_per_second_all_ranks.has_value() || fits != plan.step_time.has_value() ||
      fits != plan.peak.has_value() || fits != plan.num_recomputed.has_value()) {
    field.fail("has only some of a plan's figures; give every figure, or null for every figure");
  }
}

void require_tried(const JsonField& answer, const LoadsRecord& record) {
  if (answer.is_null()) return;
  const bool is_tried = std::any_of(record.tried.begin(), record.tried.end(),
                                    [load = answer.integer()](const LoadPlan& plan) {
                                      return plan.load == load && plan.tokens_per_second;
                                    });
  if (!is_tried) answer.fail("must be a load in \"tried\" that fits");
}

}  // namespace

void try_loads(const PlanOfLoad& plan_of, const std::function<bool()>& is_stopped,
               LoadsRecord& record) {
  LoadFinder(plan_of, is_stopped, record).run();
}

Json loads_to_json(const LoadsRecord& record) { return document_of(kLoadsSchema, record); }

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
    root.at("best").fail("and \"largest_that_fits\" must both be loads or both be null");
  }
  return record;
}

}  // namespace rematch
