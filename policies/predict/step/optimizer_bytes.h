// Computes the bytes that an optimizer holds between steps and while it runs, from the sizes of the
// parameters only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// rematch runs kAdamW. The others serve predictions only.
enum class OptimizerModel : std::uint8_t {
  kNothing,
  kAdamW,
  kAdamWBfloat16,
  kAdamW8Bit,
  kMuon,
  kSgd,
  kSgdMomentum
};

// "none", "adamw", "adamw(state=bfloat16)", "adamw8bit", "muon", "sgd", "sgd(momentum=0.9)"
std::string_view to_string(OptimizerModel optimizer);
std::optional<OptimizerModel> optimizer_model_from_string(std::string_view text);
const std::vector<std::string_view>& optimizer_model_names();

struct OptimizerBytes {
  Bytes state;      // held between steps
  Bytes temporary;  // the most that a step adds at once
  bool operator==(const OptimizerBytes&) const = default;
};

// Note [What optimizers hold]
// - adamw, as harness/training/optimizer.h runs it: two float32 moments and a float32 step count
//   for every parameter. A parameter that is not float32 also has a float32 master copy. Its
//   gradient is cast to float32 while it is updated, one parameter at a time.
// - adamw(state=bfloat16): two bfloat16 moments and a float32 step count, no master copy. This is
//   what pytorch/pytorch, torch/optim/adam.py does for bfloat16 parameters, because moments are
//   made like the parameter.
// - adamw8bit: two moments of one byte per element, with a float32 scale for each 256 elements. Two
//   float32 moments below 4096 elements. No master copy. Source:
//   bitsandbytes-foundation/bitsandbytes, bitsandbytes/optim/optimizer.py, Optimizer2State. The
//   release notes of v0.44.0 say 256; before, it was 2048.
// - muon: a momentum like the gradient, and a second moment for parameters outside blocks, which
//   recipes leave to AdamW. Source: pytorch/pytorch, torch/optim/_muon.py, and the README of
//   KellerJordan/Muon. Its temporaries are not counted, because a trace does not know a parameter's
//   shape. They are up to five bfloat16 copies of the largest matrix.
// - sgd: nothing. sgd(momentum=0.9): a momentum like the gradient. Source: pytorch/pytorch,
//   torch/optim/sgd.py, where the buffer is a clone of the gradient.
OptimizerBytes optimizer_bytes(const Trace& trace, OptimizerModel optimizer);

}  // namespace rematch
