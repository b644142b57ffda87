// A trace: what one training step of one model does, as the dispatcher sees it just below
// autograd. Ops, values, bytes, aliases, scopes, and what backward demands, in order. No times,
// no policy. Recorded once (harness/trace), read by everything that decides.
//
// In memory a trace is flat: op, value, storage, scope and pack ids are indices into the
// vectors below. Its JSON (trace_json.h) stores each distinct block type once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/id.h"
#include "policies/trace/op_class.h"

namespace rematch {

using OpId = Id<struct OpTag>;
using ValueId = Id<struct ValueTag>;
using StorageId = Id<struct StorageTag>;
using ScopeId = Id<struct ScopeTag>;
using PackId = Id<struct PackTag>;

struct TracedStorage {
  Bytes bytes;
  // The program holds what op made it until this op has begun: at the boundary after it, only
  // autograd, or a region, can still hold it. The end of the ops: until forward returns. Absent: to
  // the end of the step, as the loss, and all that comes from outside.
  std::optional<OpId> freed_at;
  bool operator==(const TracedStorage&) const = default;
};

// One output of an op, or a tensor from outside that ops read, which has no producer. Views are
// values that share a storage.
struct TracedValue {
  std::optional<OpId> producer;
  StorageId storage;
  std::vector<std::int64_t> shape;
  std::string dtype;  // "float32", "bfloat16", "int64", "bool"
  bool is_parameter = false;
  bool operator==(const TracedValue&) const = default;
};

// A read of a value: `version` is the number of in-place writes its storage had seen.
struct TracedUse {
  ValueId value;
  std::int32_t version = 0;
  bool operator==(const TracedUse&) const = default;
};

struct TracedOp {
  std::string name;  // "aten::mm", "aten::add.Tensor": overload after a dot, default omitted
  OpClass op_class = OpClass::kOther;
  std::optional<ScopeId> scope;   // innermost scope open at the call
  std::vector<TracedUse> inputs;  // tensor arguments in schema order
  std::vector<ValueId> outputs;   // fresh outputs only; what an in-place op returns is an input
  std::vector<StorageId> writes;  // storages it mutates
  bool is_view = false;           // outputs share an input's storage; nothing is computed
  bool draws_random = false;      // advances a generator
  std::int64_t flops = 0;         // matmul and attention ops; 0 elsewhere
  std::string group;              // of a collective: the process group's name, "tp"; else empty
  bool operator==(const TracedOp&) const = default;
};

// A scope instance: one opening of a name in forward. Ops [first_op, end_op).
struct TracedScope {
  std::string path;  // "blocks.3.attention"
  std::optional<ScopeId> parent;
  OpId first_op;
  OpId end_op;
  bool operator==(const TracedScope&) const = default;
};

// A transformer layer: a scope that was opened with a layer index.
struct TracedBlock {
  ScopeId scope;
  std::string list;  // "blocks"
  int index = 0;     // its layer index in that list
  bool operator==(const TracedBlock&) const = default;
};

// A tensor saved for backward. `at_op` is the number of ops that had run when it was packed,
// which is below its consumer for inputs and above its producer for outputs.
struct TracedPack {
  ValueId value;
  std::int32_t version = 0;
  OpId at_op;
  // The number of ops that had run when autograd dropped the saved tensor during forward, because
  // backward could no longer reach it. Absent: autograd held it until backward.
  std::optional<OpId> dropped_at = std::nullopt;
  bool operator==(const TracedPack&) const = default;
};

// Backward of the run without checkpointing, in order: which saved tensors it asks for and lets
// go of, and the bytes of everything it made itself (gradients, temporaries) after each op.
struct BackwardEvent {
  // kPutAway: what a demand gave is in nobody's hands any more, before an op that runs ahead of the
  // release. Without one the release is also that.
  enum class Kind : std::uint8_t { kDemand, kPutAway, kRelease, kOp };
  Kind kind = Kind::kOp;
  std::optional<PackId> pack;  // all but kOp
  std::string op;              // kOp: name
  // kDemand, kOp: bytes born in backward and alive before the demand, after the op; and those of
  // them that are gradients of parameters.
  Bytes other_bytes;
  Bytes gradient_bytes;
  // kDemand, kOp: the innermost scope that was open in forward when autograd made the node that is
  // at work.
  std::optional<ScopeId> scope;
  // kOp that starts a collective: its process group, and the larger of all that goes in and comes
  // out.
  std::string group;
  Bytes collective_bytes;
  bool operator==(const BackwardEvent&) const = default;
};

// A collective once backward is over: it sums gradients over ranks. Bytes as in BackwardEvent.
struct TracedCollective {
  std::string op;
  std::string group;
  Bytes bytes;
  bool operator==(const TracedCollective&) const = default;
};

// Parameters of one size and type: what an optimizer's state is made for.
struct TracedParameters {
  std::int64_t elements = 0;
  std::string dtype;
  std::int64_t count = 0;
  bool operator==(const TracedParameters&) const = default;
};

struct Trace {
  std::string model;                               // preset name
  std::map<std::string, std::int64_t> dimensions;  // every dimension that shaped it
  std::string dtype;
  IdTable<OpId, TracedOp> ops;  // forward, in dispatch order, loss included
  IdTable<ValueId, TracedValue> values;
  IdTable<StorageId, TracedStorage> storages;
  IdTable<ScopeId, TracedScope> scopes;
  std::vector<TracedBlock> blocks;
  IdTable<PackId, TracedPack> packs;
  std::vector<BackwardEvent> backward;
  std::vector<TracedCollective> gradient_sums;
  Bytes parameter_bytes;
  std::vector<TracedParameters> parameters;  // each size and type once
  // Other bytes held from before the step to its end, without the optimizer's state: frozen
  // weights, tables, the batch.
  Bytes constant_bytes;
  Bytes gradient_bytes;  // of all parameters, when backward is over
  bool operator==(const Trace&) const = default;
};

// How many of the events are ops.
std::size_t num_ops(const std::vector<BackwardEvent>& events);

// SHA-256, in hex, of the trace's canonical JSON: what a plan names as its model.
std::string trace_sha256(const Trace& trace);

}  // namespace rematch
