// Combines a plan with saved-tensor hooks that the program itself sets around or inside a region.
//
// Note [Saved-tensor hooks of the program]
// A program may set its own hooks around a region: save_on_cpu, a trainer's offloader, a logger.
// The engine combines them with the plan:
// - The first step under a pair of hooks is a trial. The pair packs the same tensors as without the
//   plan. Each unpacked tensor is compared with the tensor that was packed. If the pack function
//   returns its argument, the pair frees no memory, and the plan decides what is kept.
// - If all bits were equal, later steps apply the pair to the values that the plan keeps. These
//   values are packed when the region ends, and unpacked when its backward begins.
// - If some bits differed, or if the pair belongs to a checkpointing library, the pair alone
//   decides what is kept. Under such a pair no region opens, and the engine warns once.
// Hooks that are set inside a region pack what autograd saves there, as without the plan. Hooks are
// Python functions, so only Python can identify them: see set_program_hooks().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "harness/engine/record/record.h"

namespace rematch {

// Returns a number that identifies the code of a pair of Python functions. The number is the same
// in all steps. Returns -1 for functions of a checkpointing library. Acquires the interpreter's
// lock itself.
using IdentifyHooks = std::int64_t (*)(void* pack, void* unpack);
// Returns the c10::TensorImpl of a Python object, borrowed. Returns null if the object is not a
// tensor.
using TensorOf = void* (*)(void* python_object);

// Registers both functions above for the whole process. Call this before the first recorded step.
// Without it, all hooks of the program are treated like those of a checkpointing library.
void set_program_hooks(IdentifyHooks identify, TensorOf tensor_of);

enum class HookTrust : std::uint8_t { kOnTrial, kExact, kDecides };

// A pair of hooks on the thread's stack.
struct HookPair {
  void* pack = nullptr;  // the Python functions; alive while the pair is on the stack
  void* unpack = nullptr;
  std::int64_t id = -1;
  HookTrust trust = HookTrust::kDecides;
};

// Returns the program's innermost pair of hooks on this thread. If this is the pair `known`, does
// not call Python.
std::optional<HookPair> hooks_of_program(const std::optional<HookPair>& known);

// Returns whether the unpack function of a pair always returns contiguous tensors, even if the
// packed tensors were not contiguous.
bool makes_contiguous(const HookPair& pair);

// Returns hooks that autograd calls for one saved tensor. These hooks call the program's hooks.
// Under kOnTrial they also compare the unpacked tensor with the packed tensor. If the program's
// pack function returns its argument, the tensor is saved through `otherwise` instead.
std::unique_ptr<torch::autograd::SavedVariableHooks> program_hooks(
    const HookPair& pair, std::unique_ptr<torch::autograd::SavedVariableHooks> otherwise);

// The kept values of a record, packed by the program's hooks.
class PackedValues {
 public:
  // Packs the values that the record keeps, if packing can free memory. Call this at the end of the
  // region, on the thread that ran forward. Rethrows exceptions of the program's pack.
  void pack(Record& record, const HookPair& pair);

  // Restores all packed values in the record.
  void unpack(Record& record);

  // Returns whether the program's unpack function makes tensors contiguous. If so, saved tensors
  // must be contiguous too.
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
