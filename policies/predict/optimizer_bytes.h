// What an optimizer holds between steps and while it runs, from the sizes of the parameters alone.
#pragma once

#include <cstdint>

#include "policies/trace/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class OptimizerModel : std::uint8_t { kNothing, kAdamW };

struct OptimizerBytes {
  Bytes state;      // between steps
  Bytes temporary;  // most that a step adds at once
  bool operator==(const OptimizerBytes&) const = default;
};

// AdamW as harness/run/optimizer.h runs it: two float32 moments and a float32 step count for every
// parameter, and for a parameter that is not float32 a float32 master copy, with its gradient cast
// to float32 while it is updated, one parameter at a time.
OptimizerBytes optimizer_bytes(const Trace& trace, OptimizerModel optimizer);

}  // namespace rematch
