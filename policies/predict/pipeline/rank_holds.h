// Adds up what a rank of a pipeline holds while one pass runs: the other micro-batches of the
// running stage, and everything of the rank's other stages.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/trace/holder.h"

namespace rematch {

// The bytes that one stage holds.
struct StageHolds {
  HolderBytes standing;    // parameters, optimizer's state and constants
  Bytes gradients;         // gradients of all parameters
  Bytes weight_gradients;  // the part of `gradients` that weight passes compute
  Bytes in_flight;         // each micro-batch, between its forward and its backward
  Bytes for_weights;       // each micro-batch, between its backward and its weight pass
};

// The most that others hold during the passes of one kind of one stage. Absent: there is no such
// pass. A pass is a first one if the stage has no gradients of the pass's kind yet.
struct HeldDuring {
  std::optional<HolderBytes> first;
  std::optional<HolderBytes> later;
};
struct HeldByOthers {
  HeldDuring forward;
  HeldDuring backward;
  HeldDuring weights;
  HolderBytes optimizer;  // the other stages of the rank
};

// Returns what others hold during the passes of a rank's stage. `stages` has one entry for each
// stage of the rank. A null entry: what this stage holds is unknown and does not count.
HeldByOthers held_by_others(const std::vector<PassMoment>& moments,
                            const std::vector<const StageHolds*>& stages, std::size_t stage);

}  // namespace rematch
