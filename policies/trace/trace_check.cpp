#include "policies/trace/trace_check.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "policies/base/schema.h"

namespace rematch {
namespace {

using Problem = std::optional<std::string>;

bool in_range(std::int32_t id, std::size_t count) {
  return id >= 0 && static_cast<std::size_t>(id) < count;
}

bool none_or_in_range(std::int32_t id, std::size_t count) {
  return id == kNone || in_range(id, count);
}

bool is_count(std::int64_t number) { return number >= 0 && number <= kLargestInteger; }

// "op 3 (aten::mm): reads value 9 of 5".
class Place {
 public:
  Place(std::string_view what, std::size_t index, std::string_view name = {}) {
    text_.append(what).append(" ").append(std::to_string(index));
    if (!name.empty()) text_.append(" (").append(name).append(")");
    text_.append(": ");
  }
  Problem says(const std::string& problem) const { return text_ + problem; }
  Problem refers(const std::string& what, std::int64_t id, std::size_t count) const {
    return says("refers to " + what + " " + std::to_string(id) + " of " + std::to_string(count));
  }

 private:
  std::string text_;
};

Problem check_storages(const Trace& trace) {
  for (std::size_t index = 0; index < trace.storages.size(); ++index) {
    const std::int64_t bytes = trace.storages[index].bytes.count;
    if (!is_count(bytes)) {
      return Place("storage", index).says("has " + std::to_string(bytes) + " bytes");
    }
  }
  return std::nullopt;
}

Problem check_values(const Trace& trace) {
  for (std::size_t index = 0; index < trace.values.size(); ++index) {
    const TracedValue& value = trace.values[index];
    const Place place("value", index);
    if (!in_range(value.storage, trace.storages.size())) {
      return place.refers("storage", value.storage, trace.storages.size());
    }
    if (!none_or_in_range(value.producer, trace.ops.size())) {
      return place.refers("op", value.producer, trace.ops.size());
    }
    for (const std::int64_t size : value.shape) {
      if (!is_count(size)) return place.says("has a dimension of " + std::to_string(size));
    }
  }
  return std::nullopt;
}

// Boolean indexing, x[x > 0]: PyTorch turns a mask of bool or uint8 into as many rows as it has
// ones. The first input is what is indexed.
bool indexes_by_mask(const Trace& trace, const TracedOp& op) {
  if (op.name != "aten::index.Tensor" && op.name != "aten::_unsafe_index.Tensor") return false;
  for (std::size_t input = 1; input < op.inputs.size(); ++input) {
    const std::string& dtype = trace.values[static_cast<std::size_t>(op.inputs[input].value)].dtype;
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

Problem check_op(const Trace& trace, std::size_t index, std::vector<bool>& is_output) {
  const TracedOp& op = trace.ops[index];
  const Place place("op", index, op.name);
  const auto self = static_cast<OpId>(index);
  if (op.name.empty()) return place.says("has no name");
  if (!none_or_in_range(op.scope, trace.scopes.size())) {
    return place.refers("scope", op.scope, trace.scopes.size());
  }
  for (const TracedUse& use : op.inputs) {
    if (!in_range(use.value, trace.values.size())) {
      return place.refers("value", use.value, trace.values.size());
    }
    const OpId producer = trace.values[static_cast<std::size_t>(use.value)].producer;
    if (producer != kNone && producer >= self) {
      return place.says("reads value " + std::to_string(use.value) + " before it is made");
    }
    if (use.version < 0) return place.says("reads version " + std::to_string(use.version));
  }
  for (const ValueId output : op.outputs) {
    if (!in_range(output, trace.values.size())) {
      return place.refers("value", output, trace.values.size());
    }
    const auto value = static_cast<std::size_t>(output);
    if (trace.values[value].producer != self || is_output[value]) {
      return place.says("does not own its output, value " + std::to_string(output));
    }
    is_output[value] = true;
  }
  for (const StorageId written : op.writes) {
    if (!in_range(written, trace.storages.size())) {
      return place.refers("storage", written, trace.storages.size());
    }
  }
  if (!is_count(op.flops)) return place.says("has " + std::to_string(op.flops) + " flops");
  return std::nullopt;
}

Problem check_ops(const Trace& trace) {
  std::vector<bool> is_output(trace.values.size(), false);
  for (std::size_t index = 0; index < trace.ops.size(); ++index) {
    if (auto problem = check_op(trace, index, is_output)) return problem;
  }
  for (std::size_t index = 0; index < trace.values.size(); ++index) {
    if (trace.values[index].producer != kNone && !is_output[index]) {
      return Place("value", index).says("is no output of its producer");
    }
  }
  return std::nullopt;
}

// Checks storages that have a valid producer.
Problem check_lifetimes(const Trace& trace) {
  std::vector<OpId> producers(trace.storages.size(), kNone);
  for (auto value = trace.values.rbegin(); value != trace.values.rend(); ++value) {
    producers[static_cast<std::size_t>(value->storage)] = value->producer;
  }
  for (std::size_t index = 0; index < trace.storages.size(); ++index) {
    const OpId freed_at = trace.storages[index].freed_at;
    if (freed_at == kNone) continue;
    if (producers[index] == kNone || freed_at <= producers[index] ||
        static_cast<std::size_t>(freed_at) > trace.ops.size()) {
      return Place("storage", index)
          .says("is freed at op " + std::to_string(freed_at) + " and made by op " +
                std::to_string(producers[index]));
    }
  }
  return std::nullopt;
}

Problem check_scopes(const Trace& trace) {
  for (std::size_t index = 0; index < trace.scopes.size(); ++index) {
    const TracedScope& scope = trace.scopes[index];
    const Place place("scope", index, scope.path);
    if (scope.path.empty() || scope.path.front() == '.') return place.says("has no name");
    if (!none_or_in_range(scope.parent, index)) return place.refers("scope", scope.parent, index);
    if (scope.first_op < 0 || scope.end_op < scope.first_op ||
        static_cast<std::size_t>(scope.end_op) > trace.ops.size()) {
      return place.says("spans ops " + std::to_string(scope.first_op) + " to " +
                        std::to_string(scope.end_op) + " of " + std::to_string(trace.ops.size()));
    }
  }
  for (std::size_t index = 0; index < trace.blocks.size(); ++index) {
    const TracedBlock& block = trace.blocks[index];
    const Place place("block", index, block.list);
    if (!in_range(block.scope, trace.scopes.size())) {
      return place.refers("scope", block.scope, trace.scopes.size());
    }
    if (block.index < 0) return place.says("has layer index " + std::to_string(block.index));
  }
  return std::nullopt;
}

Problem check_packs(const Trace& trace) {
  for (std::size_t index = 0; index < trace.packs.size(); ++index) {
    const TracedPack& pack = trace.packs[index];
    const Place place("pack", index);
    if (!in_range(pack.value, trace.values.size())) {
      return place.refers("value", pack.value, trace.values.size());
    }
    if (pack.version < 0) return place.says("has version " + std::to_string(pack.version));
    const OpId producer = trace.values[static_cast<std::size_t>(pack.value)].producer;
    if (pack.at_op < 0 || static_cast<std::size_t>(pack.at_op) > trace.ops.size() ||
        (producer != kNone && producer >= pack.at_op)) {
      return place.says("is packed after " + std::to_string(pack.at_op) + " ops, out of order");
    }
  }
  return std::nullopt;
}

Problem check_backward(const Trace& trace) {
  for (std::size_t index = 0; index < trace.backward.size(); ++index) {
    const BackwardEvent& event = trace.backward[index];
    const Place place("backward event", index, event.op);
    if (!none_or_in_range(event.scope, trace.scopes.size())) {
      return place.refers("scope", event.scope, trace.scopes.size());
    }
    if (!is_count(event.other_bytes.count)) {
      return place.says("leaves " + std::to_string(event.other_bytes.count) + " bytes");
    }
    if (!is_count(event.gradient_bytes.count) || event.gradient_bytes > event.other_bytes) {
      return place.says("leaves " + std::to_string(event.gradient_bytes.count) +
                        " bytes of gradients among " + std::to_string(event.other_bytes.count));
    }
    if (!is_count(event.collective_bytes.count)) {
      return place.says("exchanges " + std::to_string(event.collective_bytes.count) + " bytes");
    }
    if (event.kind == BackwardEvent::Kind::kOp) {
      if (event.op.empty() || event.pack != kNone) return place.says("is no op");
      continue;
    }
    if (!in_range(event.pack, trace.packs.size())) {
      return place.refers("pack", event.pack, trace.packs.size());
    }
    if (!event.op.empty()) return place.says("is both a pack's event and an op");
    if (event.kind != BackwardEvent::Kind::kDemand && event.other_bytes.count != 0) {
      return place.says("releases a pack and has bytes");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> data_dependence(const Trace& trace) {
  for (std::size_t index = 0; index < trace.ops.size(); ++index) {
    const std::string& name = trace.ops[index].name;
    if (!shape_depends_on_data(name) && !indexes_by_mask(trace, trace.ops[index])) continue;
    return Place("op", index, name)
        .says(
            "the shape of its result depends on data, so no other step's bytes can be told from "
            "this one's; replace it in the model");
  }
  return std::nullopt;
}

std::optional<std::string> trace_problem(const Trace& trace) {
  for (const auto& check : {check_storages, check_values, check_ops, check_lifetimes, check_scopes,
                            check_packs, check_backward}) {
    if (auto problem = check(trace)) return problem;
  }
  if (!is_count(trace.parameter_bytes.count)) {
    return "parameters have " + std::to_string(trace.parameter_bytes.count) + " bytes";
  }
  if (!is_count(trace.constant_bytes.count)) {
    return "constants have " + std::to_string(trace.constant_bytes.count) + " bytes";
  }
  if (!is_count(trace.gradient_bytes.count)) {
    return "gradients have " + std::to_string(trace.gradient_bytes.count) + " bytes";
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
