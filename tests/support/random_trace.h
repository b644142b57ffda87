// Random traces for property tests: several block types in random order, nested scopes, views,
// in-place writes, random ops, multi-output ops, packs, and the backward that belongs to them.
#pragma once

#include <cstdint>

#include "policies/trace/trace.h"

namespace rematch::testing {

struct RandomTraceOptions {
  int layers = 6;
  int block_types = 2;  // layers of one type are equal but for their parameters
  int ops_per_block = 12;
  int ops_outside_blocks = 4;  // before, between and after blocks
  // Ops that save their own result have a name that says so, as autograd's have. Else it is not
  // known whether such a tensor was saved by its maker or by the op behind it, where both could.
  bool names_say_saves = false;
  // Some ops start a collective, whose results are waited for then or later.
  bool collectives = false;
};

// The same seed and options give the same trace. Valid for autograd: nothing is written in place
// after it was packed or by an op whose gradient needs the old value.
Trace random_trace(std::uint32_t seed, const RandomTraceOptions& options = {});

}  // namespace rematch::testing
