// Computes the bytes that an optimizer holds, between steps and while it runs. Needs only the sizes
// of the parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// rematch itself runs only kAdamW. The other optimizers are only for predictions.
enum class OptimizerKind : std::uint8_t {
  kNothing,
  kAdamW,
  kAdamWBfloat16,
  kAdamW8Bit,
  kMuon,
  kSgd,
  kSgdMomentum
};

// "none", "adamw", "adamw(state=bfloat16)", "adamw8bit", "muon", "sgd", "sgd(momentum=0.9)"
std::string_view to_string(OptimizerKind optimizer);
std::optional<OptimizerKind> optimizer_kind_from_string(std::string_view text);
const std::vector<std::string_view>& optimizer_kind_names();

struct OptimizerBytes {
  Bytes state;      // bytes that the optimizer holds between steps
  Bytes temporary;  // peak of additional bytes during an optimizer step
  bool operator==(const OptimizerBytes&) const = default;
};

// Note [What optimizers hold]
// - adamw keeps two float32 moments and a float32 step count for every parameter, like
//   harness/training/optimizer.h. A parameter that is not float32 also has a float32 master copy.
//   While such a parameter is updated, its gradient is cast to float32. Parameters are updated one
//   at a time. A model with fused ops updates all parameters with one op and needs no cast.
// - adamw(state=bfloat16) keeps two bfloat16 moments and a float32 step count, and no master copy.
//   PyTorch does this for bfloat16 parameters, because its moments have the dtype of the parameter.
//   Source: pytorch/pytorch, torch/optim/adam.py.
// - adamw8bit keeps two moments of one byte per element, with a float32 scale for each 256
//   elements. If a parameter has fewer than 4096 elements, its two moments are float32. There is no
//   master copy. Source: bitsandbytes-foundation/bitsandbytes, bitsandbytes/optim/optimizer.py,
//   Optimizer2State. The block size of 256 is from the release notes of v0.44.0; earlier versions
//   used 2048.
// - muon keeps a momentum with the size and dtype of the gradient. Parameters outside blocks, which
//   training recipes leave to AdamW, also have a second moment. Source: pytorch/pytorch,
//   torch/optim/_muon.py, and the README of KellerJordan/Muon. Muon's temporaries are not counted,
//   because a trace does not contain the shapes of parameters. They are up to five bfloat16 copies
//   of the largest matrix.
// - sgd keeps nothing. sgd(momentum=0.9) keeps a momentum with the size and dtype of the gradient.
//   Source: pytorch/pytorch, torch/optim/sgd.py, which creates the momentum as a clone of the
//   gradient.
//
// The size of each tensor is rounded up to a multiple of `round`, as some allocators do.
OptimizerBytes optimizer_bytes(const Trace& trace, OptimizerKind optimizer, std::int64_t round = 1);

}  // namespace rematch
