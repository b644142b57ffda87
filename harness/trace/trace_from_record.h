// Turns a tracer's observations into a Trace.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/engine/record/record.h"
#include "policies/trace/trace.h"

namespace rematch {

struct ObservedValue {
  std::vector<std::int64_t> shape;
  std::string dtype;  // empty if the tracer has not seen the value
  Bytes storage_bytes;
  bool is_parameter = false;
};

struct ObservedOp {
  std::optional<ScopeId> scope;
  bool draws_random = false;
  std::string group;  // same as TracedOp::group
};

// One step: the recorded forward, including the loss, and everything else that the tracer observed.
struct Observations {
  Record record;
  // All ids below are indices into the tables of `record`.
  IdTable<ValueId, ObservedValue> values;
  IdTable<OpId, ObservedOp> ops;
  IdTable<StorageId, std::optional<OpId>> freed_at;  // same as TracedStorage::freed_at
  IdTable<ScopeId, TracedScope> scopes;
  std::vector<TracedBlock> blocks;
  IdTable<PackId, TracedPack> packs;
  std::vector<BackwardEvent> backward;
  Bytes gradient_bytes;
};

// Returns a name such as "float32", "bfloat16" or "int64".
std::string dtype_name(c10::ScalarType type);

Trace trace_from_observations(Observations observations);

}  // namespace rematch
