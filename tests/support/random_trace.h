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
  // If true, an op that saves its own result has a name that shows this, as in autograd. Otherwise,
  // it is unclear whether a saved tensor was saved by its producer or by the next op.
  bool names_say_saves = false;
  // Some ops start a collective. Waits for its results follow at once or later.
  bool collectives = false;
};

// The same seed and options give the same trace. The trace is valid for autograd: no op writes in
// place to a packed value, or to a value that its own gradient needs.
Trace random_trace(std::uint32_t seed, const RandomTraceOptions& options = {});

}  // namespace rematch::testing
