#include "policies/trace/trace_check.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "policies/base/json.h"
#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

using Problem = std::optional<std::string>;

bool is_count(std::int64_t number) { return number >= 0 && number <= kLargestInteger; }

// Formats a message about an entry: "op 3 (aten::mm): refers to value 9 of 5". Keeps a reference to
// the entry's name.
class Place {
 public:
  template <class Tag>
  Place(std::string_view what, Id<Tag> id, std::string_view name = {})
      : Place(what, static_cast<std::size_t>(id.index), name) {}
  Place(std::string_view what, std::size_t index, std::string_view name = {})
      : what_(what), index_(index), name_(name) {}
  Problem says(std::string_view problem) const {
    std::string text(what_);
    text.append(" ").append(std::to_string(index_));
    if (!name_.empty()) text.append(" (").append(name_).append(")");
    return text.append(": ").append(problem);
  }
  // Returns a message if `id` is not in the table, and nullopt otherwise.
  template <class AnyId, class T>
  Problem refers(std::string_view what, std::optional<AnyId> id,
                 const IdTable<AnyId, T>& table) const {
    if (!id || table.contains(*id)) return std::nullopt;
    return says(std::string("refers to ").append(what).append(" ").append(to_string(*id)) + " of " +
                std::to_string(table.size()));
  }
  template <class AnyId, class T>
  Problem refers(std::string_view what, AnyId id, const IdTable<AnyId, T>& table) const {
    return refers(what, std::optional<AnyId>(id), table);
  }

 private:
  std::string_view what_;
  std::size_t index_;
  std::string_view name_;
};

Problem check_storages(const Trace& trace) {
  for (const StorageId id : trace.storages.ids()) {
    const std::int64_t bytes = trace.storages[id].bytes.count;
    if (!is_count(bytes)) {
      return Place("storage", id).says("has " + std::to_string(bytes) + " bytes");
    }
  }
  return std::nullopt;
}

Problem check_values(const Trace& trace) {
  for (const ValueId id : trace.values.ids()) {
    const TracedValue& value = trace.values[id];
    const Place place("value", id);
    if (auto problem = place.refers("storage", value.storage, trace.storages)) return problem;
    if (auto problem = place.refers("op", value.producer, trace.ops)) return problem;
    for (const std::int64_t size : value.shape) {
      if (!is_count(size)) return place.says("has a dimension of " + std::to_string(size));
    }
  }
  return std::nullopt;
}

// Returns whether an op is boolean indexing, such as x[x > 0]. A mask of bool or uint8 selects one
// entry for each nonzero element, so the shape of the result depends on data. The op's first input
// is the indexed tensor.
bool indexes_by_mask(const Trace& trace, const TracedOp& op) {
  if (op.name != "aten::index.Tensor" && op.name != "aten::_unsafe_index.Tensor") return false;
  for (std::size_t input = 1; input < op.inputs.size(); ++input) {
    const std::string& dtype = trace.values[op.inputs[input].value].dtype;
    if (dtype == "bool" || dtype == "uint8") return true;
  }
  return false;
}

bool shape_depends_on_data(std::string_view name) {
  constexpr std::string_view kOps[] = {"aten::nonzero",
                                       "aten::masked_select",
                                       "aten::repeat_interleave.Tensor",
                                       "aten::bincount",
                                       "aten::_unique",
                                       "aten::_unique2",
                                       "aten::unique_consecutive",
                                       "aten::unique_dim",
                                       "aten::unique_dim_consecutive"};
  return std::find(std::begin(kOps), std::end(kOps), name) != std::end(kOps);
}

Problem check_op(const Trace& trace, OpId self, IdTable<ValueId, bool>& is_output) {
  const TracedOp& op = trace.ops[self];
  const Place place("op", self, op.name);
  if (op.name.empty()) return place.says("has no name");
  if (auto problem = place.refers("scope", op.scope, trace.scopes)) return problem;
  for (const TracedUse& use : op.inputs) {
    if (auto problem = place.refers("value", use.value, trace.values)) return problem;
    const std::optional<OpId> producer = trace.values[use.value].producer;
    if (producer && *producer >= self) {
      return place.says("reads value " + to_string(use.value) +
                        " before an op produces this value");
    }
    if (use.version < 0) return place.says("reads version " + std::to_string(use.version));
  }
  for (const ValueId output : op.outputs) {
    if (auto problem = place.refers("value", output, trace.values)) return problem;
    if (trace.values[output].producer != self || is_output[output]) {
      return place.says("is not the producer of its output, value " + to_string(output));
    }
    is_output[output] = true;
  }
  for (const StorageId written : op.writes) {
    if (auto problem = place.refers("storage", written, trace.storages)) return problem;
  }
  for (const StorageId written : op.overwrites) {
    if (auto problem = place.refers("storage", written, trace.storages)) return problem;
  }
  for (const ValueId copied : op.copies) {
    if (auto problem = place.refers("value", copied, trace.values)) return problem;
  }
  if (!is_count(op.flops)) return place.says("has " + std::to_string(op.flops) + " flops");
  return std::nullopt;
}

Problem check_ops(const Trace& trace) {
  IdTable<ValueId, bool> is_output(trace.values.size(), false);
  for (const OpId op : trace.ops.ids()) {
    if (auto problem = check_op(trace, op, is_output)) return problem;
  }
  for (const ValueId value : trace.values.ids()) {
    if (trace.values[value].producer && !is_output[value]) {
      return Place("value", value).says("is not an output of its producer");
    }
  }
  return std::nullopt;
}

// Checks that each storage is freed after the op that makes it. Runs after check_values, because it
// relies on valid storage ids.
Problem check_lifetimes(const Trace& trace) {
  IdTable<StorageId, std::optional<OpId>> producers(trace.storages.size());
  for (auto value = trace.values.rbegin(); value != trace.values.rend(); ++value) {
    producers[value->storage] = value->producer;
  }
  for (const StorageId storage : trace.storages.ids()) {
    const std::optional<OpId> freed_at = trace.storages[storage].freed_at;
    if (!freed_at) continue;
    const std::optional<OpId> producer = producers[storage];
    if (!producer || freed_at <= producer || freed_at > trace.ops.end_id()) {
      return Place("storage", storage)
          .says("is freed at op " + to_string(*freed_at) + " and made by " +
                (producer ? "op " + to_string(*producer) : "none"));
    }
  }
  return std::nullopt;
}

Problem check_scopes(const Trace& trace) {
  for (const ScopeId id : trace.scopes.ids()) {
    const TracedScope& scope = trace.scopes[id];
    const Place place("scope", id, scope.path);
    if (scope.path.empty() || scope.path.front() == '.') return place.says("has no name");
    if (scope.parent && (*scope.parent < ScopeId() || *scope.parent >= id)) {
      return place.says("refers to scope " + to_string(*scope.parent) + " of " + to_string(id));
    }
    if (scope.first_op < OpId() || scope.end_op < scope.first_op ||
        scope.end_op > trace.ops.end_id()) {
      return place.says("spans ops " + to_string(scope.first_op) + " to " +
                        to_string(scope.end_op) + " of " + std::to_string(trace.ops.size()));
    }
  }
  for (std::size_t index = 0; index < trace.blocks.size(); ++index) {
    const TracedBlock& block = trace.blocks[index];
    const Place place("block", index, block.list);
    if (auto problem = place.refers("scope", block.scope, trace.scopes)) return problem;
    if (block.index < 0) return place.says("has layer index " + std::to_string(block.index));
  }
  return std::nullopt;
}

Problem check_packs(const Trace& trace) {
  for (const PackId id : trace.packs.ids()) {
    const TracedPack& pack = trace.packs[id];
    const Place place("pack", id);
    if (auto problem = place.refers("value", pack.value, trace.values)) return problem;
    if (pack.version < 0) return place.says("has version " + std::to_string(pack.version));
    const std::optional<OpId> producer = trace.values[pack.value].producer;
    if (pack.at_op < OpId() || pack.at_op > trace.ops.end_id() ||
        (producer && *producer >= pack.at_op)) {
      return place.says("is packed after " + to_string(pack.at_op) + " ops, out of order");
    }
    if (pack.dropped_at &&
        (*pack.dropped_at < pack.at_op || *pack.dropped_at > trace.ops.end_id())) {
      return place.says("is dropped after " + to_string(*pack.dropped_at) + " ops, out of order");
    }
  }
  return std::nullopt;
}

Problem check_backward(const Trace& trace) {
  for (std::size_t index = 0; index < trace.backward.size(); ++index) {
    const BackwardEvent& event = trace.backward[index];
    const Place place("backward event", index, event.op);
    if (auto problem = place.refers("scope", event.scope, trace.scopes)) return problem;
    if (!is_count(event.other_bytes.count)) {
      return place.says("leaves " + std::to_string(event.other_bytes.count) + " bytes");
    }
    if (!is_count(event.gradient_bytes.count) || event.gradient_bytes > event.other_bytes) {
      return place.says("has " + std::to_string(event.gradient_bytes.count) +
                        " bytes of gradients, but only " + std::to_string(event.other_bytes.count) +
                        " bytes in total");
    }
    if (!is_count(event.collective_bytes.count)) {
      return place.says("exchanges " + std::to_string(event.collective_bytes.count) + " bytes");
    }
    if (event.kind == BackwardEvent::Kind::kOp) {
      if (event.op.empty() || event.pack) return place.says("is not an op");
      continue;
    }
    if (!event.pack) return place.says("names no pack");
    if (auto problem = place.refers("pack", event.pack, trace.packs)) return problem;
    if (!event.op.empty()) return place.says("is both a pack's event and an op");
    if (event.kind != BackwardEvent::Kind::kDemand && event.other_bytes.count != 0) {
      return place.says("releases a pack, but also has bytes");
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

Problem check_stage(const Trace& trace) {
  if (!trace.stage) return std::nullopt;
  const TracedStage& stage = *trace.stage;
  const auto size_of = [&](std::string_view name) {
    const auto found = trace.dimensions.find(std::string(name));
    return found == trace.dimensions.end() ? std::int64_t{1} : found->second;
  };
  const std::int64_t ranks = size_of(kPipeline);
  const std::int64_t each = size_of(kInterleave);
  if (stage.index < 0 || stage.index >= ranks * each) {
    return "stage " + std::to_string(stage.index) + " does not exist: the dimension pp is " +
           std::to_string(ranks) +
           (each > 1 ? " and interleave is " + std::to_string(each) : std::string());
  }
  if (!is_count(stage.held_bytes.count)) {
    return "the stage holds " + std::to_string(stage.held_bytes.count) + " bytes";
  }
  const std::size_t events = micro_batches(trace) > 1 ? trace.backward.size() : 0;
  for (const auto* bytes : {&stage.first_other_bytes, &stage.first_gradient_bytes}) {
    if (bytes->size() == events) continue;
    return "the stage has bytes of " + std::to_string(bytes->size()) + " events in backward of " +
           std::to_string(events);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> data_dependence(const Trace& trace) {
  for (const OpId id : trace.ops.ids()) {
    const std::string& name = trace.ops[id].name;
    if (!shape_depends_on_data(name) && !indexes_by_mask(trace, trace.ops[id])) continue;
    return Place("op", id, name)
        .says(
            "the shape of its result depends on data, so this step does not predict the bytes of "
            "other steps; replace the op in the model");
  }
  return std::nullopt;
}

std::optional<std::string> trace_problem(const Trace& trace) {
  for (const auto& check : {check_storages, check_values, check_ops, check_lifetimes, check_scopes,
                            check_packs, check_backward, check_stage}) {
    if (auto problem = check(trace)) return problem;
  }
  for (const auto& [what, bytes] : {std::pair("parameters", trace.parameter_bytes),
                                    std::pair("constants", trace.constant_bytes),
                                    std::pair("gradients", trace.gradient_bytes)}) {
    if (is_count(bytes.count)) continue;
    return std::string(what) + " have " + std::to_string(bytes.count) + " bytes";
  }
  for (const TracedCollective& sum : trace.gradient_sums) {
    if (is_count(sum.bytes.count)) continue;
    return sum.op + " of gradients exchanges " + std::to_string(sum.bytes.count) + " bytes";
  }
  for (const TracedParameters& parameters : trace.parameters) {
    if (is_count(parameters.elements) && is_count(parameters.count)) continue;
    return "there are " + std::to_string(parameters.count) + " parameters of " +
           std::to_string(parameters.elements) + " elements";
  }
  return std::nullopt;
}

}  // namespace rematch
