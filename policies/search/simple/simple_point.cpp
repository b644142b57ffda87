#include "policies/search/simple/simple_point.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "policies/search/simple/simple_form.h"

namespace rematch {
namespace {

FrontPoint best_simple(SimpleSearch& search, const FrontRecord& record) {
  const Front& front = record.front;
  std::optional<FrontPoint> found;
  if (record.max_slowdown_ratio) {
    const auto least = static_cast<double>(front.nothing_recomputed.step_time.count());
    found = search.lowest_within(std::chrono::nanoseconds(
        static_cast<std::int64_t>(least * (1 + *record.max_slowdown_ratio))));
  } else {
    const Bytes knee = front.points[front.knee].figures.peak;
    found = search.fastest_within(limit_of(record).value_or(knee));
  }
  return found ? *std::move(found) : search.lowest();
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
  SearchSpace as_trainers = space;
  as_trainers.schedule = Schedule::kWholeRegion;
  SimpleSearch search(trace, profile, as_trainers);
  if (space.is_stopped()) return std::nullopt;
  SimplePoint simple{best_simple(search, record), {}, {}};
  FrontPoint& point = simple.point;
  point.step_time_bound = exact.step_time_bound(point.figures.peak);
  const auto least = static_cast<double>(record.front.nothing_recomputed.step_time.count());
  const double slowdown = static_cast<double>(point.step_time.count()) / least - 1;
  const FrontPoint lower = exact.lowest_within_slowdown(std::max(slowdown, 0.0));
  simple.more_peak = std::max(point.figures.peak - lower.figures.peak, Bytes{});
  if (const auto faster = exact.fastest_within(point.figures.peak)) {
    simple.more_time = std::max(point.step_time - faster->step_time, std::chrono::nanoseconds{});
  }
  return simple;
}

}  // namespace rematch
