// A trace: what one training step of one model does, as the dispatcher sees it just below
// autograd. Ops, values, bytes, aliases, scopes, and what backward demands, in order. No times,
// no policy. Recorded once (harness/trace), read by everything that decides.
//
// In memory a trace is flat: op, value, storage, scope and pack ids are indices into the
// vectors below. Its JSON (trace_json.h) stores each distinct block type once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policies/trace/bytes.h"
#include "policies/trace/op_class.h"

namespace rematch {

using OpId = std::int32_t;
using ValueId = std::int32_t;
using StorageId = std::int32_t;
using ScopeId = std::int32_t;
using PackId = std::int32_t;
inline constexpr std::int32_t kNone = -1;

struct TracedStorage {
  Bytes bytes;
  bool operator==(const TracedStorage&) const = default;
};

// One output of an op, or a tensor from outside that ops read (producer kNone). Views are
// values that share a storage.
struct TracedValue {
  OpId producer = kNone;
  StorageId storage = kNone;
  std::vector<std::int64_t> shape;
  std::string dtype;  // "float32", "bfloat16", "int64", "bool"
  bool is_parameter = false;
  bool operator==(const TracedValue&) const = default;
};

// A read of a value: `version` is the number of in-place writes its storage had seen.
struct TracedUse {
  ValueId value = kNone;
  std::int32_t version = 0;
  bool operator==(const TracedUse&) const = default;
};

struct TracedOp {
  std::string name;  // "aten::mm", "aten::add.Tensor": overload after a dot, default omitted
  OpClass op_class = OpClass::kOther;
  ScopeId scope = kNone;          // innermost scope open at the call; kNone outside all
  std::vector<TracedUse> inputs;  // tensor arguments in schema order
  std::vector<ValueId> outputs;   // fresh outputs only; what an in-place op returns is an input
  std::vector<StorageId> writes;  // storages it mutates
  bool is_view = false;           // outputs share an input's storage; nothing is computed
  bool draws_random = false;      // advances a generator
  std::int64_t flops = 0;         // matmul and attention ops; 0 elsewhere
  bool operator==(const TracedOp&) const = default;
};

// A scope instance: one opening of a name in forward. Ops [first_op, end_op).
struct TracedScope {
  std::string path;  // "blocks.3.attention"
  ScopeId parent = kNone;
  OpId first_op = 0;
  OpId end_op = 0;
  bool operator==(const TracedScope&) const = default;
};

// A transformer layer: a scope that was opened with a layer index.
struct TracedBlock {
  ScopeId scope = kNone;
  std::string list;  // "blocks"
  int index = 0;     // its layer index in that list
  bool operator==(const TracedBlock&) const = default;
};

// A tensor saved for backward. `at_op` is the number of ops that had run when it was packed,
// which is below its consumer for inputs and above its producer for outputs.
struct TracedPack {
  ValueId value = kNone;
  std::int32_t version = 0;
  OpId at_op = 0;
  bool operator==(const TracedPack&) const = default;
};

// Backward of the run without checkpointing, in order: which saved tensors it asks for and lets
// go of, and the bytes of everything it made itself (gradients, temporaries) after each op.
struct BackwardEvent {
  enum class Kind : std::uint8_t { kDemand, kRelease, kOp };
  Kind kind = Kind::kOp;
  PackId pack = kNone;  // kDemand, kRelease
  std::string op;       // kOp: name
  Bytes other_bytes;    // kOp: bytes born in backward and alive after the op
  bool operator==(const BackwardEvent&) const = default;
};

struct Trace {
  std::string model;                               // preset name
  std::map<std::string, std::int64_t> dimensions;  // every dimension that shaped it
  std::string dtype;
  std::vector<TracedOp> ops;  // forward, in dispatch order, loss included
  std::vector<TracedValue> values;
  std::vector<TracedStorage> storages;
  std::vector<TracedScope> scopes;
  std::vector<TracedBlock> blocks;
  std::vector<TracedPack> packs;
  std::vector<BackwardEvent> backward;
  Bytes parameter_bytes;
  bool operator==(const Trace&) const = default;
};

// SHA-256, in hex, of the trace's canonical JSON: what a plan names as its model.
std::string trace_sha256(const Trace& trace);

}  // namespace rematch
