#include "policies/search/front/loads.h"

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
  LoadFinder(std::int64_t least, std::int64_t most, const TokensPerSecond& ask,
             const std::function<bool()>& is_stopped)
      : least_(least), most_(most), ask_(ask), is_stopped_(is_stopped) {}

  LargestLoad run() {
    LargestLoad found;
    try {
      if (fits(least_)) {
        try_between(least_, largest());
        refine();
      }
    } catch (const Stopped&) {
      found.is_complete = false;
    }
    for (const auto& [load, rate] : tried_) {
      found.tried.push_back({load, rate});
      if (rate) found.largest = load;
    }
    if (found.largest) found.best = best()->first;
    return found;
  }

 private:
  struct Stopped {};
  using Tried = std::map<std::int64_t, std::optional<double>>;

  bool fits(std::int64_t load) {
    if (const auto known = tried_.find(load); known != tried_.end())
      return known->second.has_value();
    if (is_stopped_()) throw Stopped();
    const std::optional<double> rate = ask_(load);
    if (is_stopped_()) throw Stopped();
    tried_.emplace(load, rate);
    return rate.has_value();
  }

  std::int64_t largest() {
    if (fits(most_)) return most_;
    std::int64_t low = least_;  // fits
    std::int64_t high = most_;  // does not
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
      const bool is_last = next == tried_.end() || !next->second;
      const std::int64_t high = is_last ? at->first : next->first;
      const std::size_t before = tried_.size();
      try_between(low, at->first);
      try_between(at->first, high);
      if (tried_.size() == before) return;
    }
  }

  Tried::const_iterator best() const {
    auto best = tried_.begin();
    for (auto it = tried_.begin(); it != tried_.end(); ++it) {
      if (it->second && (!best->second || *it->second > *best->second)) best = it;
    }
    return best;
  }

  std::int64_t least_;
  std::int64_t most_;
  const TokensPerSecond& ask_;
  const std::function<bool()>& is_stopped_;
  Tried tried_;
};

}  // namespace

LargestLoad find_largest_load(std::int64_t least, std::int64_t most, const TokensPerSecond& ask,
                              const std::function<bool()>& is_stopped) {
  return LoadFinder(least, most, ask, is_stopped).run();
}

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
