// Recomputed ops whose results differ from the results in forward. A Checkpoint collects such ops
// if its recordings compare results: see Verify (recording.h).
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

// Thread-safe, because backward passes report from any thread.
class RecomputeDifferences {
 public:
  // Notes that the results of op `index` of the region differ. Stores only the first op of each
  // region, because all ops that read its results differ as well.
  void add(const std::string& region, std::size_t index, const std::string& op);

  std::vector<RecomputeDifference> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, RecomputeDifference> first_;  // the first difference of each region; the
                                                      // key is the region's name
};

// A hash of an op's results. Returns 0 for results that cannot be compared: views, collectives and
// undefined content. `stack` ends with the op's results. If an op has floating-point results, its
// integer results are ignored, because attention kernels leave unused seeds undefined. Waits for
// the device.
std::uint64_t hash_of_results(const OpFacts& facts, const torch::jit::Stack& stack);

}  // namespace rematch
