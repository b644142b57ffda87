// The ops of LibTorch that write statistics, noise or a state into an argument, beside computing
// their results.
//
// Note [Side writes]
// Batch norm in training writes running statistics, and its schema does not say so: a recompute
// would write them a second time. For the arguments listed here
//   - a tensor from outside is left alone: recompute hands the op scratch memory in its place,
//   which
//     the results do not depend on;
//   - where they do depend on it (`feeds_results`), the op is never repeated and its results are
//     kept, as those of any op with a side effect;
//   - a tensor of the region is written to again, as by any op in place;
//   - an op that does not write this time (batch norm in evaluation) reads what another pass may
//     write with nobody noticing: a copy of it is held, some bytes for each channel.
// Ops of other libraries that write to what their schema does not mark are not seen, except by
// OutsideCheck::kHashes (recording.h).
#pragma once

#include <string_view>
#include <vector>

namespace rematch {

struct SideWrites {
  std::string_view op;  // every overload of it that has the arguments
  std::vector<std::string_view> arguments;
  std::string_view only_if;    // a bool argument; empty: in every call
  bool feeds_results = false;  // results depend on what was there before
};

// All of them, for the tests to hold against the ops themselves.
const std::vector<SideWrites>& all_side_writes();

// Null for the other ops, which are nearly all. `op` is without overload:
// "aten::native_batch_norm".
const SideWrites* side_writes_of(std::string_view op);

}  // namespace rematch
