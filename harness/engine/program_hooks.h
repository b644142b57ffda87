// Saved-tensor hooks of the program, around a region or inside it.
//
// Note [Saved-tensor hooks of the program]
// A program may have hooks of its own where a region runs: save_on_cpu, an offloader of a trainer,
// a logger. The engine joins them with the plan as follows.
//   - The first step under a pair of hooks is the trial. The pair packs what it would pack without
//     the plan, and each tensor that it gives back is compared with the one that it took. Where
//     pack returns the tensor that it was given, the pair frees nothing, and the plan decides.
//   - A pair that gave back equal bits is then applied to what the plan keeps: kept results and
//     inputs of a region are packed when the region ends, and unpacked when backward begins there.
//   - A pair that gave back other bits, and one of a checkpointing library, decides itself what is
//     kept. Regions do not open under it, with one warning.
// Hooks inside a region pack what autograd saves there, as without the plan.
// Pairs are Python functions, so only Python can tell one from another: set_program_hooks().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "harness/engine/record/record.h"

namespace rematch {

// A number for the code of a pair of Python functions, the same in every step; -1: the functions
// are those of a checkpointing library. Takes the interpreter's lock itself.
using IdentifyHooks = std::int64_t (*)(void* pack, void* unpack);
// The c10::TensorImpl of a Python object, borrowed; null: the object is no tensor.
using TensorOf = void* (*)(void* python_object);

// For the whole process, before the first recorded step. Until then every pair decides itself.
void set_program_hooks(IdentifyHooks identify, TensorOf tensor_of);

enum class HookTrust : std::uint8_t { kOnTrial, kExact, kDecides };

// A pair of hooks that is on the thread's stack.
struct HookPair {
  void* pack = nullptr;  // the functions; alive while the pair is on the stack
  void* unpack = nullptr;
  std::int64_t id = -1;
  HookTrust trust = HookTrust::kDecides;
};

// The innermost pair of the program on this thread. `known` spares the question to Python if it is
// the same pair.
std::optional<HookPair> hooks_of_program(const std::optional<HookPair>& known);

// Whether a pair gives tensors back contiguous, whatever they were.
bool makes_contiguous(const HookPair& pair);

// Hooks for a tensor that autograd saves: those of the program, whose result is compared if the
// pair is on trial; or `otherwise` if pack returns what it was given.
std::unique_ptr<torch::autograd::SavedVariableHooks> program_hooks(
    const HookPair& pair, std::unique_ptr<torch::autograd::SavedVariableHooks> otherwise);

// The values of a record that the program's hooks hold in the record's place.
class PackedValues {
 public:
  // Packs what the record keeps and may free. Call on the thread that ran forward, at the end of
  // the region. Throws what the program's pack throws.
  void pack(Record& record, const HookPair& pair);

  // Puts all of them back into the record.
  void unpack(Record& record);

  // Whether saved tensors have to be handed out contiguous, as the pair would do.
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
