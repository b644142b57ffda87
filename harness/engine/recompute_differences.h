// Recomputed ops that gave other results than in forward, of a Checkpoint whose recordings compare
// them: see Verify (recording.h).
#pragma once

#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "harness/engine/recording.h"

namespace rematch {

struct OpFacts;

// Passes of backward report from any thread.
class RecomputeDifferences {
 public:
  // Op `index` of the region differs. Ops that read its results differ as well, so the first op of
  // each region is noted.
  void add(const std::string& region, std::size_t index, const std::string& op);

  std::vector<RecomputeDifference> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, RecomputeDifference> first_;  // by region
};

// A hash of what an op has computed; 0 where there is nothing to compare: for views, collectives
// and undefined content. `stack` ends with the op's results. Integers beside floating-point results
// are left out, because kernels of attention leave unused seeds undefined. Waits for the device.
std::uint64_t hash_of_results(const OpFacts& facts, const torch::jit::Stack& stack);

}  // namespace rematch
