// What one op of a trace costs, which bytes are new with it, and when two ops are the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// The operations of matmuls and attention, from the shapes of what they read.

// Multiply-adds count as two; 0 for other ops. Attention forward is two products of [tokens, keys]
// by head width, masked or not: what the kernel is asked for, not what it skips. Needs the op's
// name, class and inputs, and the shapes of `trace`.
std::int64_t flops_of(const Trace& trace, const TracedOp& op);

// Bytes that an op newly allocates.

// Bytes of the op's outputs in storages that none of its inputs has: 0 for views and for what is
// written in place.
Bytes fresh_bytes(const Trace& trace, const TracedOp& op);

// Which ops are one op under two names.
//
// Note [One op, two names]
// LibTorch runs a reshape that copies nothing as `aten::view` on a contiguous tensor, on meta and
// under a Python dispatch mode, and as `aten::_reshape_alias` elsewhere; both make the same view.
// So a trace may name one and a step run the other. Whoever compares names of ops asks here;
// whoever runs ops again runs what ran. What allocates or writes where the other does not is
// another op: `add.Tensor` is not `add_.Tensor`.

// Names with overload, as TracedOp::name; the one under which an op is counted and compared.
std::string_view one_name(std::string_view op);
bool is_same_op(std::string_view a, std::string_view b);

// The same counts with one name for each op.
std::map<std::string, std::int64_t> with_one_name(
    const std::map<std::string, std::int64_t>& counts);

}  // namespace rematch
