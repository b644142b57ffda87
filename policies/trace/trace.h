// A trace: what one training step of one model does, as the dispatcher sees it just below autograd.
// It lists ops, values, bytes, aliases, scopes and the demands of backward, in order. It contains
// neither times nor a policy. A trace is recorded once (harness/trace); planning and prediction
// only read it.
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
#include "policies/trace/hidden_effects.h"
#include "policies/trace/op_class.h"

namespace rematch {

using OpId = Id<struct OpTag>;
using ValueId = Id<struct ValueTag>;
using StorageId = Id<struct StorageTag>;
using ScopeId = Id<struct ScopeTag>;
using PackId = Id<struct PackTag>;

struct TracedStorage {
  Bytes bytes;
  // The first op after which the program no longer refers to the storage. From then on, only
  // autograd or a region can hold it. One past the last op: the program refers to it until forward
  // returns. Absent: the program refers to it until the end of the step. Examples are the loss and
  // all tensors from outside.
  std::optional<OpId> freed_at;
  bool operator==(const TracedStorage&) const = default;
};

// An output of an op, or a tensor from outside that an op reads. A tensor from outside has no
// producer. Views are values that share a storage.
struct TracedValue {
  std::optional<OpId> producer;
  StorageId storage;
  std::vector<std::int64_t> shape;
  std::string dtype;  // "float32", "bfloat16", "int64", "bool"
  bool is_parameter = false;
  bool operator==(const TracedValue&) const = default;
};

// A read of a value. `version` is the number of in-place writes to the value's storage before the
// read.
struct TracedUse {
  ValueId value;
  std::int32_t version = 0;
  bool operator==(const TracedUse&) const = default;
};

struct TracedOp {
  // "aten::mm", "aten::add.Tensor": the overload follows a dot; `default` is omitted
  std::string name;
  OpClass op_class = OpClass::kOther;
  std::optional<ScopeId> scope;   // innermost scope open at the call
  std::vector<TracedUse> inputs;  // tensor arguments in schema order
  // Fresh outputs only. If an in-place op returns a value, the value is an input and not an output.
  std::vector<ValueId> outputs;
  std::vector<StorageId> writes;  // storages that the op mutates
  // Storages that the op may also write to, without effect on its results. Examples are running
  // statistics and writes that torch does not see. For a write that replay cannot repeat, replay
  // later runs an op that restores the written content: see is_replay_only().
  std::vector<StorageId> overwrites;
  // Values that a region copies when the op runs, because something may overwrite them unnoticed:
  // inputs from outside, and results of `empty` that a kernel filled.
  std::vector<ValueId> copies;
  bool is_view = false;       // true: outputs share an input's storage, and nothing is computed
  bool draws_random = false;  // true: the op advances a random generator
  // floating-point operations of matmul and attention ops; 0 for other ops
  std::int64_t flops = 0;
  std::string group;  // process group of a collective, "tp"; empty for other ops
  bool operator==(const TracedOp&) const = default;
};

// A scope instance: a scope from one opening to its closing in forward. It covers ops [first_op,
// end_op).
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
  int index = 0;     // index of the layer in that list
  bool operator==(const TracedBlock&) const = default;
};

// A tensor saved for backward. `at_op` is the number of ops that had run when autograd saved it.
struct TracedPack {
  ValueId value;
  std::int32_t version = 0;
  OpId at_op;
  // The number of ops that had run when autograd dropped the saved tensor during forward, because
  // backward could no longer reach it. Absent: autograd held it until backward.
  std::optional<OpId> dropped_at = std::nullopt;
  bool operator==(const TracedPack&) const = default;
};

// An event of backward in a run without checkpointing: backward demands or releases a saved tensor,
// or runs an op.
struct BackwardEvent {
  // kPutAway: backward no longer refers to the unpacked tensor, but releases the saved tensor only
  // after another op.
  enum class Kind : std::uint8_t { kDemand, kPutAway, kRelease, kOp };
  Kind kind = Kind::kOp;
  std::optional<PackId> pack;  // absent only for kOp
  std::string op;              // name of the op; only for kOp
  // For kDemand and kOp: the live bytes that backward has allocated, before the demand or after the
  // op. gradient_bytes is the part that belongs to gradients of parameters.
  Bytes other_bytes;
  Bytes gradient_bytes;
  // For kDemand and kOp: the innermost scope that was open in forward when autograd created the
  // node that is running.
  std::optional<ScopeId> scope;
  // Only for a kOp that starts a collective: its process group, and the larger of its total input
  // and total output bytes.
  std::string group;
  Bytes collective_bytes;
  bool operator==(const BackwardEvent&) const = default;
};

// A collective that runs after backward and sums gradients over ranks. `bytes` is counted like
// BackwardEvent::collective_bytes.
struct TracedCollective {
  std::string op;
  std::string group;
  Bytes bytes;
  bool operator==(const TracedCollective&) const = default;
};

// Parameters of equal size and type. The optimizer's state depends on these.
struct TracedParameters {
  std::int64_t elements = 0;
  std::string dtype;
  std::int64_t count = 0;
  bool operator==(const TracedParameters&) const = default;
};

// One stage of a pipeline. Its trace has the passes of one micro-batch. The activation from the
// stage before is a tensor from outside, and its gradient belongs to backward. The activation that
// the stage passes on is freed at the end of forward. Backward begins with the gradient of that
// activation, which lives until backward ends.
struct TracedStage {
  std::int64_t index = 0;  // stage 0 is the first
  // Bytes that each micro-batch holds from the beginning of its forward to the end of its backward,
  // apart from what forward makes: its batch, and the activation from the stage before.
  // Trace::constant_bytes has them once.
  Bytes held_bytes;
  // With several micro-batches: the bytes of each backward event in the first micro-batch, like
  // BackwardEvent::other_bytes and BackwardEvent::gradient_bytes.
  std::vector<Bytes> first_other_bytes;
  std::vector<Bytes> first_gradient_bytes;
  bool operator==(const TracedStage&) const = default;
};

struct Trace {
  std::string model;                               // name of the model's preset
  std::map<std::string, std::int64_t> dimensions;  // all sizes that determine the model
  std::string dtype;
  IdTable<OpId, TracedOp> ops;  // ops of forward in dispatch order, including the loss
  IdTable<ValueId, TracedValue> values;
  IdTable<StorageId, TracedStorage> storages;
  IdTable<ScopeId, TracedScope> scopes;
  std::vector<TracedBlock> blocks;
  IdTable<PackId, TracedPack> packs;
  std::vector<BackwardEvent> backward;
  std::vector<TracedCollective> gradient_sums;
  Bytes parameter_bytes;
  std::vector<TracedParameters> parameters;  // one entry per size and type
  // Bytes of other tensors that exist before, during and after the step, such as frozen weights,
  // tables and the batch. Excludes the optimizer's state.
  Bytes constant_bytes;
  Bytes gradient_bytes;  // bytes of all parameters' gradients when backward ends
  // With gradient accumulation (accumulation.h): the number of ops, by name, with which the first
  // micro-batch stores gradients. Later micro-batches add gradients instead.
  std::map<std::string, std::int64_t> gradient_stores;
  // With gradient accumulation: the hash of the trace with one micro-batch. Empty otherwise.
  std::string micro_batch_sha256;
  std::optional<TracedStage> stage;  // absent: the trace is not a stage of a pipeline
  HiddenEffects hidden;              // hidden effects of the functions and ops that the step ran
  bool operator==(const Trace&) const = default;
};

// Returns the number of events that are ops.
std::size_t num_ops(const std::vector<BackwardEvent>& events);

// Returns the SHA-256, in hex, of the trace's canonical JSON. A plan identifies its model by this
// hash, which is the same for any number of micro-batches.
std::string trace_sha256(const Trace& trace);

}  // namespace rematch
