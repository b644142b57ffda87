// Arithmetic on counts by phase and name.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

template <class Name>
using CountsByPhase = std::array<std::map<Name, std::int64_t>, kNumPhases>;

// The counts of so many equal steps, from those of one.
template <class Name>
CountsByPhase<Name> times(CountsByPhase<Name> counts, int num_steps) {
  for (auto& in_phase : counts) {
    for (auto& [name, count] : in_phase) count *= num_steps;
  }
  return counts;
}

struct CountDifference {
  std::string op;
  Phase phase = Phase::kForward;
  std::int64_t one = 0;
  std::int64_t other = 0;
};

// The first by phase and name; an op that is not listed is counted 0 times. Ops that are the same
// under two names (trace_op.h) are one.
std::optional<CountDifference> first_difference(const OpCounts& one, const OpCounts& other);

}  // namespace rematch
