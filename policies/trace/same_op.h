// Which ops are one op under two names.
//
// Note [One op, two names]
// LibTorch runs a reshape that copies nothing as `aten::view` on a contiguous tensor, on meta and
// under a Python dispatch mode, and as `aten::_reshape_alias` elsewhere; both make the same view.
// So a trace may name one and a step run the other. Whoever compares names of ops asks here;
// whoever runs ops again runs what ran. What allocates or writes where the other does not is
// another op: `add.Tensor` is not `add_.Tensor`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rematch {

// Names with overload, as TracedOp::name.
bool is_same_op(std::string_view a, std::string_view b);

// The same counts with one name for each op.
std::map<std::string, std::int64_t> with_one_name(
    const std::map<std::string, std::int64_t>& counts);

}  // namespace rematch
