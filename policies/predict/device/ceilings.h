// The highest rates that programs reach on one card, for step times in absolute terms. A data sheet
// gives peaks that no program reaches. scripts/gpu/ceilings.py measures these rates.
#pragma once

#include <optional>
#include <string>

#include "policies/base/json_fwd.h"

namespace rematch {

// Note [Which rate prices an op]
// - A matmul takes the longer of two times: that of its arithmetic at `matmul`, and that of its
//   bytes at `copy`. Attention is priced in the same way, at `attention_forward`.
// - Every other op takes the time of its bytes: an op of rematch::, which is one kernel, at `copy`,
//   and an op of PyTorch at `elementwise`.
// - The fused loss is a matmul and a kernel that reads the logits, one after the other. Its
// backward
//   is three matmuls, or two if forward keeps the logits, and a kernel that reads the logits and
//   writes their gradients. Sums of the input's gradient over chunks of classes are left out.
// - Backward of a matmul takes twice the time of its forward, because it is two matmuls of that
//   size. Backward of attention has 2.5 times the FLOPs of
//   forward (it computes the scores again; Dao, FlashAttention-2, section 4.1) and runs at
//   `attention_backward`. Backward of any other op is assumed to take twice the time of forward.
// - The optimizer moves its bytes at `elementwise`. With fused ops it is one kernel, which moves
//   them at `copy`.
struct Ceilings {
  std::string card;  // the name that the driver gives the card: "NVIDIA H200"
  // FLOPs per second of large matmuls of bfloat16
  double matmul = 0;
  // bytes per second of a copy within the device, read and written bytes together
  double copy = 0;
  // FLOPs per second of attention, where a causal mask counts as if nothing were masked. Absent:
  // the rate of matmuls.
  std::optional<double> attention_forward;
  std::optional<double> attention_backward;
  // bytes per second of PyTorch's elementwise ops. Absent: the rate of copies.
  std::optional<double> elementwise;
  // FLOPs per second of matmuls of float32. Absent: the data sheet's rate.
  std::optional<double> float32_matmul;
  std::string source;  // where the rates come from, if not from ceilings.py alone. May be empty.
  bool operator==(const Ceilings&) const = default;
};

// Converts ceilings to and from JSON, format "rematch.ceilings/1.0", without loss.

Json ceilings_to_json(const Ceilings& ceilings);

// Throws FormatError with the JSON path. Ignores unknown keys.
Ceilings ceilings_from_json(const Json& json);

}  // namespace rematch
