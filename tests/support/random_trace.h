// Random traces for property tests: several block types in random order, nested scopes, views,
// in-place writes, random ops, multi-output ops, packs, and the matching backward.
#pragma once

#include <cstdint>

#include "policies/trace/trace.h"

namespace rematch::testing {

struct RandomTraceOptions {
  int layers = 6;
  int block_types = 2;  // layers of one type differ only in their parameters
  int ops_per_block = 12;
  int ops_outside_blocks = 4;  // number of ops before, between and after blocks
  // Gives an op that saves its own result a name that shows this, as in autograd. Without such
  // names, a saved tensor may belong to its producer or to the next op.
  bool names_say_saves = false;
  // Some ops start a collective. Waits for its results follow at once or later.
  bool collectives = false;
};

// The same seed and options give the same trace. The trace is valid for autograd: no op writes in
// place to a packed value, or to a value that its own gradient needs.
Trace random_trace(std::uint32_t seed, const RandomTraceOptions& options = {});

}  // namespace rematch::testing
