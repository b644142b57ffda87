// Decides when a region's planned ops run: all at the first demand for a saved tensor of the
// region, or at each demand only the missing ops that the demand needs. Used by the engine and the
// simulator.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/plan/plan.h"

namespace rematch {

enum class ReplayExtent : std::uint8_t {
  kPrefix,        // the first demand runs the ops of forward in order, up to an early stop
  kWholeClosure,  // the first demand runs all ops that live slots depend on
  kLazyClosure,   // each demand runs only the ops that it needs
};

inline ReplayExtent replay_extent(const RegionType& type, Schedule schedule) {
  if (schedule == Schedule::kWholeRegion && !type.by_demand) return ReplayExtent::kPrefix;
  return type.whole_on_demand ? ReplayExtent::kWholeClosure : ReplayExtent::kLazyClosure;
}

// Returns the number of ops that a re-run with early stop must run. `stop` is the number of ops
// before the last pack. The result is higher if a later op writes a version that a saved tensor
// needs. `each_write` calls its argument with op, storage and version of every write in the region.
// `is_awaited` returns whether a saved tensor has that storage and at least that version.
template <typename EachWrite, typename IsAwaited>
std::int32_t stop_behind_writes(std::int32_t stop, const EachWrite& each_write,
                                const IsAwaited& is_awaited) {
  each_write([&](std::int32_t op, std::int32_t storage, std::int32_t version) {
    if (op >= stop && is_awaited(storage, version)) stop = std::max(stop, op + 1);
  });
  return stop;
}

// Materializes the slots of a demand in order: first `step->before`, then the demanded slot, then
// `step->after`. `step` may be null.
template <typename Materialize>
void materialize_in_order(int slot, const DemandStep* step, const Materialize& materialize) {
  if (step != nullptr) {
    for (const int early : step->before) materialize(early);
  }
  materialize(slot);
  if (step != nullptr) {
    for (const int early : step->after) materialize(early);
  }
}

}  // namespace rematch
