// Adds, multiplies and compares op counts, by phase and name.
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

// Multiplies the counts of one step by the number of equal steps.
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

// Returns the first difference, in the order of phases and names. An op that is not listed has
// count 0. Two names of the same op (trace_op.h) count as one.
std::optional<CountDifference> first_difference(const OpCounts& one, const OpCounts& other);

}  // namespace rematch
