#include "policies/predict/pipeline/split_backward.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "policies/predict/pipeline/schedule.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/spans.h"

namespace rematch {
namespace {

using EventKind = BackwardEvent::Kind;

bool is_matmul(const BackwardEvent& event) {
  return event.kind == EventKind::kOp && op_class_of(event.op) == OpClass::kMatmul;
}

// Reads the bytes of backward in the micro-batch that stores gradients.
class StoringBackward {
 public:
  explicit StoringBackward(const Trace& trace) : trace_(trace) {
    has_first_ = trace.stage && !trace.stage->first_other_bytes.empty();
  }
  Bytes other(std::size_t event) const {
    return has_first_ ? trace_.stage->first_other_bytes[event] : trace_.backward[event].other_bytes;
  }
  Bytes gradients(std::size_t event) const {
    return has_first_ ? trace_.stage->first_gradient_bytes[event]
                      : trace_.backward[event].gradient_bytes;
  }

 private:
  const Trace& trace_;
  bool has_first_ = false;
};

class Finder {
 public:
  explicit Finder(const Trace& trace)
      : trace_(trace), bytes_(trace), is_of_parameter_(trace.storages.size(), false) {
    for (const TracedValue& value : trace.values) {
      if (value.is_parameter) is_of_parameter_[value.storage] = true;
    }
    readers_.resize(trace.values.size());
    for (const OpId op : trace.ops.ids()) {
      for (const TracedUse& use : trace.ops[op].inputs) readers_[use.value].push_back(op);
    }
  }

  std::vector<WeightGradient> find() {
    std::vector<WeightGradient> found;
    std::optional<std::size_t> last_op;
    Bytes stored;
    const auto note = [&](Bytes gradients) {
      if (gradients > stored && last_op) {
        if (auto weight = stored_at(*last_op, gradients - stored)) found.push_back(*weight);
      }
      stored = gradients;
    };
    for (std::size_t event = 0; event < trace_.backward.size(); ++event) {
      if (!has_bytes(trace_.backward[event])) continue;
      note(bytes_.gradients(event));
      if (trace_.backward[event].kind == EventKind::kOp) last_op = event;
    }
    note(trace_.gradient_bytes);
    return found;
  }

 private:
  // Autograd stores a gradient right after the node that computes it. That node begins with the
  // demands of its saved tensors.
  std::optional<WeightGradient> stored_at(std::size_t store, Bytes gradient) const {
    std::size_t demand = store;
    while (demand > 0 && trace_.backward[demand].kind != EventKind::kDemand) --demand;
    if (trace_.backward[demand].kind != EventKind::kDemand) return std::nullopt;
    std::size_t matmul = demand + 1;
    while (matmul < store && !is_matmul(trace_.backward[matmul])) ++matmul;
    if (matmul == store) return std::nullopt;
    std::vector<PackId> inputs;  // saved tensors of the node that are no weights
    std::optional<OpId> forward;
    for (std::size_t event = demand + 1; event-- > 0;) {
      if (trace_.backward[event].kind != EventKind::kDemand) break;
      const PackId pack = *trace_.backward[event].pack;
      if (is_of_parameter_[trace_.values[trace_.packs[pack].value].storage]) continue;
      inputs.push_back(pack);
      if (is_floating(trace_.values[trace_.packs[pack].value])) forward = matmul_of(pack);
    }
    if (!forward) return std::nullopt;
    WeightGradient weight;
    weight.matmul = static_cast<std::int32_t>(matmul);
    weight.stored = static_cast<std::int32_t>(store);
    weight.first_after = weight.stored;
    while (prepares(static_cast<std::size_t>(weight.first_after - 1))) --weight.first_after;
    for (std::int32_t event = weight.first_after; event < weight.stored; ++event) {
      weight.is_copied |= class_of(static_cast<std::size_t>(event)) == OpClass::kCopy;
    }
    weight.result = bytes_.other(matmul) - other_before(matmul);
    weight.gradient = gradient;
    weight.inputs = std::move(inputs);
    weight.forward = *forward;
    const ValueId output = trace_.ops[*forward].outputs.front();
    weight.output_gradient = trace_.storages[trace_.values[output].storage].bytes;
    weight.output = with_its_gradient(output);
    return weight;
  }

  static bool is_floating(const TracedValue& value) {
    return value.dtype.starts_with("float") || value.dtype.starts_with("bfloat");
  }

  // Whether the op only changes the form of a computed gradient.
  bool prepares(std::size_t event) const {
    if (trace_.backward[event].kind != EventKind::kOp) return false;
    const OpClass op_class = class_of(event);
    return op_class == OpClass::kView || op_class == OpClass::kCopy;
  }

  OpClass class_of(std::size_t event) const { return op_class_of(trace_.backward[event].op); }

  Bytes other_before(std::size_t event) const {
    while (event-- > 0) {
      if (has_bytes(trace_.backward[event])) return bytes_.other(event);
    }
    return {};
  }

  // Autograd saves the inputs of an op right before the op runs.
  std::optional<OpId> matmul_of(PackId input) const {
    const TracedPack& pack = trace_.packs[input];
    for (const OpId reader : readers_[pack.value]) {
      if (reader >= pack.at_op && trace_.ops[reader].op_class == OpClass::kMatmul) return reader;
    }
    return std::nullopt;
  }

  // Follows views and sums, which pass the gradient of their result on as it is.
  ValueId with_its_gradient(ValueId value) const {
    while (readers_[value].size() == 1) {
      const TracedOp& reader = trace_.ops[readers_[value].front()];
      if (reader.outputs.size() != 1) break;
      const ValueId result = reader.outputs.front();
      const bool is_sum = reader.name == "aten::add.Tensor" &&
                          trace_.values[result].shape == trace_.values[value].shape;
      const bool is_same_view = reader.is_view && num_elements(result) == num_elements(value);
      if (!is_sum && !is_same_view) break;
      value = result;
    }
    return value;
  }

  std::int64_t num_elements(ValueId value) const {
    std::int64_t num = 1;
    for (const std::int64_t size : trace_.values[value].shape) num *= size;
    return num;
  }

  const Trace& trace_;
  StoringBackward bytes_;
  IdTable<StorageId, bool> is_of_parameter_;
  IdTable<ValueId, std::vector<OpId>> readers_;
};

// Returns for each event of backward whether it belongs to the weight pass.
std::vector<bool> in_weight_pass(const Trace& trace, const std::vector<WeightGradient>& waiting) {
  std::vector<bool> is_in(trace.backward.size(), false);
  for (const WeightGradient& weight : waiting) {
    is_in[static_cast<std::size_t>(weight.matmul)] = true;
    for (std::int32_t event = weight.first_after; event <= weight.stored; ++event) {
      is_in[static_cast<std::size_t>(event)] = true;
    }
  }
  return is_in;
}

}  // namespace

std::vector<WeightGradient> weight_gradients(const Trace& trace) { return Finder(trace).find(); }

std::vector<Bytes> bytes_left_for_weights(const Trace& trace,
                                          const std::vector<WeightGradient>& waiting) {
  std::set<StorageId> inputs;
  std::set<ValueId> outputs;
  // Each operand is held until its last use, so the uses are counted from the last one.
  std::vector<Bytes> left = {Bytes{}};
  for (auto weight = waiting.rbegin(); weight != waiting.rend(); ++weight) {
    Bytes bytes = left.back();
    for (const PackId pack : weight->inputs) {
      const StorageId input = trace.values[trace.packs[pack].value].storage;
      if (inputs.insert(input).second) bytes += trace.storages[input].bytes;
    }
    if (outputs.insert(weight->output).second) bytes += weight->output_gradient;
    left.push_back(bytes);
  }
  std::reverse(left.begin(), left.end());
  return left;
}

std::vector<BackwardEvent> without_weight_passes(std::vector<BackwardEvent> events,
                                                 const Trace& trace,
                                                 const std::vector<WeightGradient>& waiting,
                                                 bool stores) {
  std::vector<Bytes> results(events.size() + 1);  // change of bytes at each event
  std::vector<Bytes> gradients(events.size() + 1);
  for (const WeightGradient& weight : waiting) {
    results[static_cast<std::size_t>(weight.matmul)] += weight.result;
    results[static_cast<std::size_t>(weight.stored) + 1] -= weight.result;
    if (stores) gradients[static_cast<std::size_t>(weight.stored) + 1] += weight.gradient;
  }
  const std::vector<bool> is_removed = in_weight_pass(trace, waiting);
  std::vector<BackwardEvent> left;
  Bytes result;
  Bytes gradient;
  for (std::size_t index = 0; index < events.size(); ++index) {
    result += results[index];
    gradient += gradients[index];
    if (is_removed[index]) continue;
    events[index].other_bytes -= result + gradient;
    events[index].gradient_bytes -= gradient;
    left.push_back(std::move(events[index]));
  }
  return left;
}

Trace without_weight_passes(const Trace& trace) {
  if (!trace.stage || !pipeline_shape(trace.dimensions).splits_backward) return trace;
  Trace left = trace;
  left.backward = without_weight_passes(trace.backward, trace, weight_gradients(trace),
                                        /*stores=*/micro_batches(trace) == 1);
  return left;
}

Profile::Duration weight_pass_time(const Trace& trace, const Profile& profile) {
  const std::vector<bool> is_in = in_weight_pass(trace, weight_gradients(trace));
  Profile::Duration time{};
  std::size_t op = 0;
  for (std::size_t event = 0; event < trace.backward.size(); ++event) {
    if (trace.backward[event].kind != EventKind::kOp) continue;
    if (is_in[event]) time += profile.backward.at(op);
    ++op;
  }
  return time;
}

}  // namespace rematch
