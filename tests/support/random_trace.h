// Random traces for property tests: several block types in random order, nested scopes, views,
// in-place writes, random ops, multi-output ops, packs, and the matching backward.
#pragma once

#include <cstdint>

#include "policies/trace/trace.h"

namespace rematch::testing {

struct RandomTraceOptions {
  int layers = 6;
  int block_types = 2;  // blocks of one type differ only in their parameters
  int ops_per_block = 12;
  int ops_outside_blocks = 4;  // number of ops before, between and after blocks
  // If true, an op's name shows whether the op saves its own result, as in autograd. If false, a
  // saved result may have been saved by the op that made it or by the next op.
  bool names_say_saves = false;
  // If true, some ops start a collective. The wait follows at once or later.
  bool collectives = false;
};

// The same seed and options give the same trace. The trace is valid for autograd: no op overwrites
// a packed value, or a value that the op's own gradient needs.
Trace random_trace(std::uint32_t seed, const RandomTraceOptions& options = {});

}  // namespace rematch::testing
