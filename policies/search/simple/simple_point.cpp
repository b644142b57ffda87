#include "policies/search/simple/simple_point.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "policies/search/simple/simple_form.h"

namespace rematch {
namespace {

// `kept` is the step time of the searched trace without recompute.
FrontPoint best_simple(SimpleSearch& search, const FrontRecord& record,
                       std::chrono::nanoseconds kept) {
  const Front& front = record.front;
  std::optional<FrontPoint> found;
  if (record.max_slowdown_ratio) {
    const auto least = static_cast<double>(kept.count());
    found = search.lowest_within(std::chrono::nanoseconds(
        static_cast<std::int64_t>(least * (1 + *record.max_slowdown_ratio))));
  } else {
    const Bytes knee = front.points[front.knee].figures.peak;
    found = search.fastest_within(limit_of(record).value_or(knee));
  }
  return found ? *std::move(found) : search.lowest();
}

// Compares a simple plan with the exact front.
template <class Search>
SimplePoint compared(FrontPoint point, const FrontRecord& record, Search& exact) {
  SimplePoint simple{std::move(point), {}, {}};
  const FrontPoint& own = simple.point;
  const auto least = static_cast<double>(record.front.nothing_recomputed.step_time.count());
  const double slowdown = static_cast<double>(own.step_time.count()) / least - 1;
  const FrontPoint lower = exact.lowest_within_slowdown(std::max(slowdown, 0.0));
  simple.more_peak = std::max(own.figures.peak - lower.figures.peak, Bytes{});
  if (const auto faster = exact.fastest_within(own.figures.peak)) {
    simple.more_time = std::max(own.step_time - faster->step_time, std::chrono::nanoseconds{});
  }
  return simple;
}

SearchSpace space_of_trainers(SearchSpace space) {
  space.schedule = Schedule::kWholeRegion;
  return space;
}

}  // namespace

std::optional<Bytes> limit_of(const FrontRecord& record) {
  if (record.budget) return record.budget;
  if (record.max_slowdown_ratio) return std::nullopt;
  return record.memory_for_tensors();
}

std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact) {
  SimpleSearch search(trace, profile, space_of_trainers(space));
  if (space.is_stopped()) return std::nullopt;
  FrontPoint point = best_simple(search, record, record.front.nothing_recomputed.step_time);
  point.step_time_bound = exact.step_time_bound(point.figures.peak);
  return compared(std::move(point), record, exact);
}

std::optional<SimplePoint> find_simple(const std::vector<SearchedStage>& stages,
                                       const SearchSpace& space, const FrontRecord& record,
                                       PipelineSearch& exact) {
  std::vector<FrontPoint> points;
  for (const SearchedStage& stage : stages) {
    SimpleSearch search(stage.trace, stage.profile, space_of_trainers(space));
    if (space.is_stopped()) return std::nullopt;
    points.push_back(best_simple(search, record, stage.profile.step_time()));
  }
  return compared(exact.joined(points), record, exact);
}

}  // namespace rematch
