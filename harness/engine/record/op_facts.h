// The facts that the engine needs about an op, read from its schema once and kept for the process.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/id.h"
#include "policies/trace/collective.h"
#include "policies/trace/hidden_effects.h"

namespace rematch {

struct OpFacts {
  enum class ArgumentKind : std::uint8_t { kTensor, kTensorList, kOptionalTensorList, kOther };

  c10::OperatorHandle op;
  const c10::FunctionSchema* schema = nullptr;  // the address identifies the op
  std::string name;      // for example "aten::add.Tensor"; the default overload's name is left out
  std::int32_t id = -1;  // shared by all names of one op: Note [One op, two names]
  std::vector<ArgumentKind> arguments;
  std::size_t num_returns = 0;
  std::vector<std::uint16_t> written;       // positions of the tensor arguments that the op mutates
  std::vector<std::uint16_t> side_written;  // positions of arguments: Note [Side writes]
  std::vector<std::uint16_t> silently_written;  // positions; found by a trace
  OptionalIndex side_if;  // a bool argument; side writes happen only if the argument is true
  bool side_feeds_results = false;
  bool mutates = false;           // the schema is mutable
  bool mutates_list = false;      // the op mutates a Tensor[]
  bool returns_alias = false;     // the schema declares that some output aliases an input
  bool is_detached = false;       // autograd returns a copy of the result, without a graph
  bool may_draw = false;          // the op is tagged nondeterministic_seeded, or takes a generator
  bool is_empty_factory = false;  // the op's output has no defined content
  bool makes_alike = false;       // the op reads the sizes of its first argument, not the content
  CollectivePart collective = CollectivePart::kNothing;
  // A second call would give different results, or would write to an argument that the schema does
  // not mark. Recompute therefore never runs the op.
  bool unrepeatable = false;
  bool has_effects = false;  // may write (marked or not), may draw random numbers, or is part of a
                             // collective
  OptionalIndex dropout_argument;  // position of attention's "dropout_p"; if this argument is 0,
                                   // the op draws no random numbers
  OptionalIndex generator_argument;
  OptionalIndex device_argument;
};

// Returns whether this call makes side writes: see Note [Side writes]. `stack` ends with the op's
// arguments.
bool has_side_writes(const OpFacts& facts, const torch::jit::Stack& stack);

// Returns the process group of a functional collective, which is the last argument of the
// collective. Empty for any other op. `stack` ends with the op's arguments.
std::string group_of_collective(const torch::jit::Stack& stack);

// Returns whether the op writes to this argument. The schema need not mark the write.
bool writes_to(const OpFacts& facts, std::size_t position);

// The tensors in a value: the value itself if it is a tensor, or the tensors in a list or in nested
// lists. Empty for any other value. Tensors may be undefined.
std::vector<at::Tensor> tensors_in(const c10::IValue& value);

// Bytes of a tensor, or of all tensors in a list; 0 for any other value.
Bytes bytes_of_tensors(const c10::IValue& value);

// Returns a reference that is valid for the life of the process. The lookup is fast if this thread
// has used the op before.
const OpFacts& facts_of(const c10::OperatorHandle& op);

// Declares that the op must never be recomputed. From now on, records of this process keep its
// results. Call this before a record contains the op, and not while another thread records. Returns
// false if there is no such op.
bool mark_unrepeatable(const std::string& name);

// Declares that the op writes to this argument, although its schema does not mark the write. Later
// records of this process treat the argument as in Note [Side writes]. Must not be called while
// another thread records.
void mark_silent_writer(const OpFacts& facts, std::size_t argument);
std::int64_t num_silent_writers();

// Calls mark_unrepeatable() and mark_silent_writer() for all ops in `effects`. An op that is
// registered later is marked when it first runs. Ignores arguments that an op does not have.
void mark_hidden_effects(const HiddenEffects& effects);

// Returns OpFacts::id of the op with this name. The op need not be registered yet.
std::int32_t op_id(std::string_view name);

// Looks up a name such as "aten::add.Tensor". Returns null if this LibTorch has no such op.
const OpFacts* find_facts(const std::string& name);

// Ops of LibTorch that write statistics, noise or state into an argument, in addition to computing
// results.
//
// Note [Side writes]
// Batch norm in training writes running statistics, although its schema does not say so. A
// recompute would write the statistics a second time. The arguments listed in all_side_writes(),
// called side arguments, are therefore treated as follows:
// - A tensor from outside the region is not written again. Recompute passes scratch memory instead,
//   whose content does not affect the results.
// - If the results depend on the argument (`feeds_results`), the op is never recomputed. Its
//   results are kept, like those of any op with a side effect.
// - A tensor made in the region is written again, as by any in-place op.
// - A call may read the argument without writing it, as batch norm does in evaluation mode. Another
//   pass may then overwrite the argument unnoticed. The record therefore copies the argument, which
//   takes a few bytes per channel.
// Unmarked writes by ops of other libraries are not detected, except with OutsideCheck::kHashes
// (recording.h).

struct SideWrites {
  std::string_view op;  // name without overload; covers every overload with these arguments
  std::vector<std::string_view> arguments;
  std::string_view
      only_if;  // name of a bool argument that enables the write; empty if every call writes
  bool feeds_results = false;  // whether the op's results depend on the argument's old content
};

// All ops with side writes. Tests compare the list with what the ops really write.
const std::vector<SideWrites>& all_side_writes();

// Returns null for the many ops without side writes. `op` is a name without overload, such as
// "aten::native_batch_norm".
const SideWrites* side_writes_of(std::string_view op);

}  // namespace rematch
