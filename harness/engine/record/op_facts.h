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

namespace rematch {

struct OpFacts {
  enum class ArgumentKind : std::uint8_t { kTensor, kTensorList, kOptionalTensorList, kOther };

  c10::OperatorHandle op;
  const c10::FunctionSchema* schema = nullptr;  // identifies the op
  std::string name;      // "aten::add.Tensor"; the default overload is left out
  std::int32_t id = -1;  // equal for the names of one op: Note [One op, two names]
  std::vector<ArgumentKind> arguments;
  std::size_t num_returns = 0;
  std::vector<std::uint16_t> written;       // positions of tensor arguments it mutates
  std::vector<std::uint16_t> side_written;  // marked or not: Note [Side writes]
  OptionalIndex side_if;                    // a bool argument: they are written only if true
  bool side_feeds_results = false;
  bool mutates = false;           // schema is mutable
  bool mutates_list = false;      // mutates a Tensor[]
  bool returns_alias = false;     // some output is declared to alias an input
  bool may_draw = false;          // tagged nondeterministic_seeded, or takes a generator
  bool is_empty_factory = false;  // its output has no defined content
  bool makes_alike = false;       // of its first argument it reads the sizes, not the content
  CollectivePart collective = CollectivePart::kNothing;
  // A second call gives other results, or writes to what the schema does not mark. So recompute
  // never runs it.
  bool unrepeatable = false;
  bool has_effects = false;        // may write, marked or not, draw, or is part of a collective
  OptionalIndex dropout_argument;  // attention's "dropout_p": nothing is drawn when it is 0
  OptionalIndex generator_argument;
  OptionalIndex device_argument;
};

// Does this call do the side writes of the op? `stack` ends with its arguments.
bool has_side_writes(const OpFacts& facts, const torch::jit::Stack& stack);

// The process group of a functional collective: every one names it in its last argument. Empty for
// any other call. `stack` ends with the op's arguments.
std::string group_of_collective(const torch::jit::Stack& stack);

// Bytes of a tensor, or of all in a list; 0 of any other value.
Bytes bytes_of_tensors(const c10::IValue& value);

// Stable for the life of the process; fast for an op seen before on this thread.
const OpFacts& facts_of(const c10::OperatorHandle& op);

// Results of the op are kept in the records of this process, and it is never run again. Call it
// before a record that has the op, and not while another thread records. False: no such op.
bool mark_unrepeatable(const std::string& name);

// The op writes to an argument that its schema does not mark. From here on records of this process
// treat the argument as in Note [Side writes]. Not while another thread records.
void mark_silent_writer(const OpFacts& facts, std::size_t argument);
std::int64_t num_silent_writers();

// Looks a name such as "aten::add.Tensor" up; null if this LibTorch has no such op.
const OpFacts* find_facts(const std::string& name);

// The ops of LibTorch that write statistics, noise or a state into an argument, beside computing
// their results.
//
// Note [Side writes]
// Batch norm in training writes running statistics, and its schema does not say so: a recompute
// would write them a second time. For the arguments listed here
//   - a tensor from outside is left alone: recompute hands the op scratch memory in its place,
//   which
//     the results do not depend on;
//   - where they do depend on it (`feeds_results`), the op is never repeated and its results are
//     kept, as those of any op with a side effect;
//   - a tensor of the region is written to again, as by any op in place;
//   - an op that does not write this time (batch norm in evaluation) reads what another pass may
//     write with nobody noticing: a copy of it is held, some bytes for each channel.
// Ops of other libraries that write to what their schema does not mark are not seen, except by
// OutsideCheck::kHashes (recording.h).

struct SideWrites {
  std::string_view op;  // every overload of it that has the arguments
  std::vector<std::string_view> arguments;
  std::string_view only_if;    // a bool argument; empty: in every call
  bool feeds_results = false;  // results depend on what was there before
};

// All of them, for the tests to hold against the ops themselves.
const std::vector<SideWrites>& all_side_writes();

// Null for the other ops, which are nearly all. `op` is without overload:
// "aten::native_batch_norm".
const SideWrites* side_writes_of(std::string_view op);

}  // namespace rematch
