// Splits backward of a pipeline stage into gradients of inputs and gradients of weights, as the
// schedule ZB-H1 does.
//
// Note [What waits for the weight pass] The split follows WeightGradStore of Qi et al. 2024: a
// matmul that computes the gradient of a parameter waits for the weight pass. All other gradients,
// such as those of norms, embeddings and biases, are computed at once. Until its weight pass, a
// micro-batch keeps the operands of each waiting matmul, and nothing else:
// - the saved input of the forward matmul, and for a grouped matmul also the offsets of the groups.
//   It is the kept tensor or the recomputed one. Matmuls with the same input keep it once.
// - the gradient of the forward matmul's output. It has the size of that output. If the output is
//   only added to another output, both have the same gradient, which is kept once.
// All of this follows from the trace. harness/run/prediction keeps the output gradients while it
// records the trace of such a stage, so the bytes of backward events include them.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The gradient of one parameter that a matmul computes. Events are indices into Trace::backward.
struct WeightGradient {
  std::int32_t matmul = 0;       // event of the matmul
  std::int32_t first_after = 0;  // event of the first op that prepares the result for storing
  std::int32_t stored = 0;       // event that stores the gradient, or adds it
  Bytes result;                  // bytes of the matmul's result
  Bytes gradient;                // bytes of the stored gradient
  bool is_copied = false;        // the stored gradient is a copy of the result
  std::vector<PackId> inputs;    // saved tensors that the matmul reads
  OpId forward;                  // the forward matmul
  ValueId output;                // value that stands for the output's gradient
  Bytes output_gradient;         // bytes of that gradient
};

// Returns the weight gradients that wait, in the order of backward. Works for the trace of one
// micro-batch and for a trace that accumulates.
std::vector<WeightGradient> weight_gradients(const Trace& trace);

// Returns the bytes that a micro-batch holds for its weight pass: before the pass, after the first
// gradient, and so on. The last entry is 0.
std::vector<Bytes> bytes_left_for_weights(const Trace& trace,
                                          const std::vector<WeightGradient>& waiting);

// Removes weight passes from `events`, which are Trace::backward or have the bytes of another
// micro-batch. Also removes the bytes of their results. `stores`: whether the bytes include stored
// gradients.
std::vector<BackwardEvent> without_weight_passes(std::vector<BackwardEvent> events,
                                                 const Trace& trace,
                                                 const std::vector<WeightGradient>& waiting,
                                                 bool stores);
// Returns the trace of a stage without its weight passes. Returns other traces unchanged.
Trace without_weight_passes(const Trace& trace);

// Returns the time of all weight passes of a step.
Profile::Duration weight_pass_time(const Trace& trace, const Profile& profile);

}  // namespace rematch
