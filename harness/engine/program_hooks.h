// Combines the program's own saved-tensor hooks, around a region or inside it, with the plan.
//
// Note [Saved-tensor hooks of the program]
// A program may have its own hooks where a region runs: save_on_cpu, a trainer's offloader, a
// logger. The engine combines them with the plan:
// - The first step under a pair of hooks is a trial. The pair packs what it would pack without the
//   plan. Each tensor that it returns is compared with the tensor that it took. If pack returns the
//   tensor that it was given, the pair frees nothing, and the plan decides.
// - A pair that returned equal bits is then applied to what the plan keeps. Kept results and inputs
//   of a region are packed when the region ends, and unpacked when its backward begins.
// - A pair that returned different bits decides itself what is kept. A pair of a checkpointing
//   library does so too. Regions do not open under such a pair, and the engine warns once.
// If the hooks are set inside a region, they pack what autograd saves there, as without the plan.
// Pairs are Python functions, so only Python can tell one from another: see set_program_hooks().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "harness/engine/record/record.h"

namespace rematch {

// Returns a number for the code of a pair of Python functions. The number is the same in every
// step. It is -1 for functions of a checkpointing library. Acquires the interpreter's lock itself.
using IdentifyHooks = std::int64_t (*)(void* pack, void* unpack);
// Returns the c10::TensorImpl of a Python object, borrowed. Returns null if the object is not a
// tensor.
using TensorOf = void* (*)(void* python_object);

// Registers both functions for the whole process. Call this before the first recorded step. Without
// the functions, every pair decides itself what is kept.
void set_program_hooks(IdentifyHooks identify, TensorOf tensor_of);

enum class HookTrust : std::uint8_t { kOnTrial, kExact, kDecides };

// A pair of hooks on the thread's stack.
struct HookPair {
  void* pack = nullptr;  // the Python functions; alive while the pair is on the stack
  void* unpack = nullptr;
  std::int64_t id = -1;
  HookTrust trust = HookTrust::kDecides;
};

// The program's innermost pair of hooks on this thread. If this pair is `known`, Python is not
// asked again.
std::optional<HookPair> hooks_of_program(const std::optional<HookPair>& known);

// Returns whether the unpack function of a pair always returns contiguous tensors, even if the
// packed tensors were not contiguous.
bool makes_contiguous(const HookPair& pair);

// Returns hooks for a tensor that autograd saves. The returned hooks call the program's hooks. If
// the pair's trust is kOnTrial, they compare its result with the tensor. If the program's pack
// returns the tensor that it was given, they use `otherwise`.
std::unique_ptr<torch::autograd::SavedVariableHooks> program_hooks(
    const HookPair& pair, std::unique_ptr<torch::autograd::SavedVariableHooks> otherwise);

// The values of a record that the program's hooks hold in place of the record.
class PackedValues {
 public:
  // Packs the values that the record keeps and may free. Call this at the end of the region, on the
  // thread that ran forward. Rethrows exceptions of the program's pack.
  void pack(Record& record, const HookPair& pair);

  // Restores all packed values in the record.
  void unpack(Record& record);

  // Returns whether saved tensors must be returned contiguous, because the pair would return
  // contiguous tensors.
  bool makes_contiguous() const { return makes_contiguous_; }

 private:
  struct Packed {
    std::int32_t value;
    std::vector<std::int64_t> strides;
    std::unique_ptr<torch::autograd::SavedVariableHooks> hooks;
  };

  std::vector<Packed> packed_;
  bool makes_contiguous_ = false;
};

}  // namespace rematch
