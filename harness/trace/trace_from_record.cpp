#include "harness/trace/trace_from_record.h"

#include <algorithm>
#include <utility>

#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

std::string without_overload(const std::string& name) {
  const std::size_t after_namespace = name.find("::");
  return name.substr(0, name.find('.', after_namespace == std::string::npos ? 0 : after_namespace));
}

// Fills in the shape and dtype of a view that an opaque call returned. No op read this view, so the
// tracer has not seen its tensor.
void set_view(const Record& record, std::size_t id, TracedValue& view, const Trace& trace) {
  const RecordedOp& op = record.ops[static_cast<std::size_t>(*record.values[id].op)];
  view.shape = record.arguments[op.first_argument + 1].toIntVector();
  view.dtype = trace.values[ValueId(record.uses[op.first_use].value)].dtype;
}

void add_values(const Observations& seen, Trace& trace) {
  trace.storages.resize(seen.record.storages.size());
  for (std::size_t i = 0; i < seen.record.values.size(); ++i) {
    const RecordedValue& value = seen.record.values[i];
    const ObservedValue& observed = seen.values.at(i);
    const StorageId storage(value.storage);
    trace.values.push_back({.producer = optional_id<OpId>(value.op),
                            .storage = storage,
                            .shape = observed.shape,
                            .dtype = observed.dtype,
                            .is_parameter = observed.is_parameter});
    if (observed.dtype.empty()) {
      set_view(seen.record, i, trace.values.back(), trace);
    } else {
      // A sparse tensor consists of several tensors, so it has more bytes than any one of them.
      Bytes& bytes = trace.storages[storage].bytes;
      bytes = std::max(bytes, observed.storage_bytes);
    }
    trace.storages[storage].freed_at = seen.freed_at[storage];
  }
}

// Returns whether one of the op's outputs shares its storage with one of its inputs.
bool shares_storage(const Trace& trace, const TracedOp& op) {
  for (const ValueId output : op.outputs) {
    for (const TracedUse& input : op.inputs) {
      if (trace.values[input.value].storage == trace.values[output].storage) return true;
    }
  }
  return false;
}

// Adds a write to a made-up outside value, so that plans keep the op's result and never recompute
// it.
void add_state(Trace& trace, TracedOp& op) {
  const StorageId state(trace.storages.size());
  const ValueId value(trace.values.size());
  trace.storages.push_back({});
  trace.values.push_back(
      {.producer = std::nullopt, .storage = state, .shape = {0}, .dtype = "uint8"});
  op.inputs.push_back({.value = value});
  op.writes.push_back(state);
}

// Adds the side arguments that the call reads but does not write. The engine copies them, because
// another pass may overwrite them unnoticed. See Note [Side writes] in
// harness/engine/record/op_facts.h.
void add_copies(const Record& record, const RecordedOp& recorded, TracedOp& op) {
  if (recorded.side_writes || recorded.facts->side_feeds_results) return;
  for (std::size_t i = 0; i < recorded.num_uses; ++i) {
    const RecordedUse& use = record.uses[recorded.first_use + i];
    if (is_side_argument(*recorded.facts, use)) op.copies.emplace_back(use.value);
  }
}

void add_ops(const Observations& seen, Trace& trace) {
  const Record& record = seen.record;
  for (std::size_t i = 0; i < record.ops.size(); ++i) {
    const RecordedOp& recorded = record.ops[i];
    const OpId self(i);
    TracedOp op{.name = recorded.facts->name,
                .op_class = op_class_of(without_overload(recorded.facts->name)),
                .scope = seen.ops[self].scope,
                .draws_random = seen.ops[self].draws_random,
                .group = seen.ops[self].group};
    for (std::size_t j = 0; j < recorded.num_uses; ++j) {
      const RecordedUse& use = record.uses[recorded.first_use + j];
      op.inputs.push_back({.value = ValueId(use.value), .version = use.version});
      if (!is_written(recorded, use)) continue;
      const RecordedValue& value = record.values[use.value];
      if (recorded.held_writes && !record.storages[value.storage].outside) {
        // in a replay, a later op of the record restores what this op wrote
        add_once(op.overwrites, StorageId(value.storage));
        continue;
      }
      if (recorded.side_effect) op.writes.emplace_back(value.storage);
      const bool is_aside = !recorded.side_effect && record.storages[value.storage].outside;
      if (is_aside)
        // in a replay, the op writes to scratch memory instead
        op.overwrites.emplace_back(value.storage);
    }
    for (std::size_t j = 0; j < recorded.num_outputs; ++j) {
      const OptionalIndex value = record.outputs[recorded.first_output + j];
      if (value.has_value() && record.values[*value].op == self.index) {
        op.outputs.emplace_back(*value);
      }
    }
    add_copies(record, recorded, op);
    const bool is_held_alone = recorded.held_writes && op.writes.empty();
    if (recorded.facts->unrepeatable || is_held_alone) add_state(trace, op);
    op.is_view = recorded.facts->returns_alias || shares_storage(trace, op);
    op.flops = flops_of(trace, op);
    trace.ops.push_back(std::move(op));
  }
  for (const RecordedWrite& write : record.writes) {
    trace.ops[OpId(write.op)].writes.emplace_back(write.storage);
  }
  for (const RecordedWriteAhead& write : record.writes_ahead) {
    const OpId op(write.op);
    if (trace.ops.contains(op)) trace.ops[op].overwrites.emplace_back(write.storage);
  }
  for (const RecordedConstantCopy& copy : record.constant_copies) {
    const OpId op(copy.op);
    if (trace.ops.contains(op)) trace.ops[op].copies.emplace_back(copy.value);
  }
}

void add_hidden_effects(const Record& record, Trace& trace) {
  for (const RecordedOp& op : record.ops) {
    const OpFacts& facts = *op.facts;
    if (!facts.silently_written.empty()) {
      const auto& written = facts.silently_written;
      trace.hidden.silent_writers.push_back({facts.name, {written.begin(), written.end()}});
    }
    // Skips the op that stands for an opaque call, because the engine always keeps the results of
    // such a call.
    const bool is_ours = facts.name.starts_with("rematch::");
    if (facts.unrepeatable && !is_ours) trace.hidden.kept_ops.push_back(facts.name);
  }
  trace.hidden = united(trace.hidden, {});  // sorts the lists and removes duplicates
}

}  // namespace

std::string dtype_name(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return "float32";
    case c10::ScalarType::Double:
      return "float64";
    case c10::ScalarType::BFloat16:
      return "bfloat16";
    case c10::ScalarType::Half:
      return "float16";
    case c10::ScalarType::Long:
      return "int64";
    case c10::ScalarType::Int:
      return "int32";
    case c10::ScalarType::Byte:
      return "uint8";
    case c10::ScalarType::Bool:
      return "bool";
    default:
      return c10::toString(type);
  }
}

Trace trace_from_observations(Observations seen) {
  Trace trace;
  add_values(seen, trace);
  add_ops(seen, trace);
  add_hidden_effects(seen.record, trace);
  trace.scopes = std::move(seen.scopes);
  trace.blocks = std::move(seen.blocks);
  trace.packs = std::move(seen.packs);
  trace.backward = std::move(seen.backward);
  trace.gradient_bytes = seen.gradient_bytes;
  return trace;
}

}  // namespace rematch
