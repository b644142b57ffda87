// Computes the cost and the allocated bytes of one op of a trace, and decides whether two ops are
// the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the floating-point operations of a matmul or an attention forward op, and 0 for other
// ops. A multiply-add counts as two. An attention mask does not reduce the count.
std::int64_t flops_of(const Trace& trace, const TracedOp& op);

// Returns the bytes that the op newly allocates for outputs that share no storage with its inputs.
// Views and in-place writes count as 0 bytes.
Bytes fresh_bytes(const Trace& trace, const TracedOp& op);

// Note [One op, two names]
// A reshape that copies nothing is recorded as `aten::view` or as `aten::_reshape_alias`. LibTorch
// runs `aten::view` if the tensor is contiguous, if the device is meta, or if a Python dispatch
// mode is active. A trace may therefore name one op while a step runs the other. Code that compares
// op names must use these functions. Code that runs ops again must run the op that ran originally.

// Returns the name by which an op is counted and compared: the two names of one op give the same
// result. Names include the overload, like TracedOp::name.
std::string_view one_name(std::string_view op);
bool is_same_op(std::string_view a, std::string_view b);

// Merges the counts of ops that have two names.
std::map<std::string, std::int64_t> with_one_name(
    const std::map<std::string, std::int64_t>& counts);

}  // namespace rematch
