// Gradient accumulation: a step that runs forward and backward on several micro-batches, one after
// another, and then the optimizer once. Gradients of the micro-batches are added up.
//
// Note [Trace of micro-batches] The first micro-batch stores each gradient. Every later one finds
// the gradients of all parameters alive, adds its own to them, and frees its own. At every op
// boundary it therefore holds at least as many bytes as the first micro-batch, and all later
// micro-batches are alike. So the trace of such a step is the trace of a later micro-batch. Its
// gradient_bytes are alive before forward, and the bytes of its backward events exclude them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// The dimension that holds the number of micro-batches. Absent: 1.
inline constexpr std::string_view kAccumulate = "accumulate";

// The dimension that holds the number of ranks of a pipeline. Absent: 1.
inline constexpr std::string_view kPipeline = "pp";
// The dimension that holds the number of stages on each of these ranks. Absent: 1.
inline constexpr std::string_view kInterleave = "interleave";
// The dimension that is 1 if the pipeline's schedule is ZB-H1. Absent: backward is one pass.
inline constexpr std::string_view kZeroBubble = "zb";

inline constexpr std::int64_t kMaxMicroBatches = 65'536;

// The op with which a later micro-batch adds to a gradient. Source: pytorch/pytorch,
// torch/csrc/autograd/functions/accumulate_grad.h.
inline constexpr const char* kAddsGradient = "aten::add_.Tensor";

// The dimension that is 1 if the gradients of a model of another dtype are float32. Absent:
// gradients have the dtype of their parameters.
inline constexpr std::string_view kFloat32Gradients = "float32_gradients";

// Returns the number of micro-batches in a step of the trace.
std::int64_t micro_batches(const Trace& trace);

// Returns the bytes of gradients that are alive when the traced micro-batch begins: 0 without
// accumulation.
Bytes gradients_before(const Trace& trace);

bool has_float32_gradients(const Trace& trace);

// Returns text such as ", 4 micro-batches, float32 gradients" for a model's dimensions. Empty for a
// step of one micro-batch whose gradients have the dtype of their parameters.
std::string accumulation_words(const std::map<std::string, std::int64_t>& dimensions);

// Converts the trace of a step with one micro-batch to a step with `micro_batches` of that size.
// Returns the trace unchanged if `micro_batches` is 1. Throws std::invalid_argument if the trace
// accumulates already, or if the number is not from 1 to kMaxMicroBatches.
Trace accumulating(Trace trace, std::int64_t micro_batches);

}  // namespace rematch
