// Random traces for property tests: several block types in random order, nested scopes, views,
// in-place writes, random ops, multi-output ops, packs, and the matching backward.
#pragma once

#include <cstdint>

#include "policies/trace/trace.h"

namespace rematch::testing {

struct RandomTraceOptions {
  int layers = 6;
  int block_types = 2;  // layers of one type are equal except for their parameters
  int ops_per_block = 12;
  int ops_outside_blocks = 4;  // before, between and after blocks
  // An op that saves its own result gets a name that shows this, as in autograd. Otherwise a saved
  // tensor may belong to its maker or to the next op, and nothing shows which.
  bool names_say_saves = false;
  // Some ops start a collective. Waits for its results follow at once or later.
  bool collectives = false;
};

// The same seed and options give the same trace. It is valid for autograd: nothing is written in
// place after it was packed, or by an op whose gradient needs the old value.
Trace random_trace(std::uint32_t seed, const RandomTraceOptions& options = {});

}  // namespace rematch::testing
