#include "tests/support/trace_builder.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rematch::testing {
namespace {

std::int64_t element_bytes(std::string_view dtype) {
  if (dtype == "bool") return 1;
  if (dtype == "bfloat16") return 2;
  return dtype == "int64" ? 8 : 4;
}

std::int64_t num_elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

// The gradients that are alive during backward, keyed by the storage of their value.
class Gradients {
 public:
  explicit Gradients(const Trace& trace) : trace_(trace) {}

  // Allocates the gradient, or adds in place to an existing one.
  void add(ValueId value) {
    const StorageId storage = trace_.values[value].storage;
    if (!alive_.emplace(storage, true).second) return;
    current_ += trace_.storages[storage].bytes;
    if (trace_.values[value].is_parameter) {
      of_parameters_ += trace_.storages[storage].bytes;
    }
  }
  // Frees an activation's gradient once its producer's node has run. Gradients of parameters stay.
  void drop(ValueId value) {
    const StorageId storage = trace_.values[value].storage;
    if (alive_.erase(storage) > 0) current_ -= trace_.storages[storage].bytes;
  }
  Bytes current() const { return current_; }
  Bytes of_parameters() const { return of_parameters_; }

 private:
  const Trace& trace_;
  std::map<StorageId, bool> alive_;
  Bytes current_;
  Bytes of_parameters_;
};

BackwardEvent event_of(BackwardEvent::Kind kind, PackId pack) {
  BackwardEvent event;
  event.kind = kind;
  event.pack = pack;
  return event;
}

BackwardEvent op_event(std::string name, Bytes bytes) {
  BackwardEvent event;
  event.op = std::move(name);
  event.other_bytes = bytes;
  return event;
}

// Backward runs one op for each input that gets a gradient: a matmul's backward is two products.
std::string backward_name(const TracedOp& op) {
  if (op.is_view || op.op_class == OpClass::kMatmul) return op.name;
  return op.name + "_backward";
}

}  // namespace

TraceBuilder::TraceBuilder(std::string model, std::string dtype) {
  trace_.model = std::move(model);
  trace_.dtype = std::move(dtype);
}

TraceBuilder::OpenScope TraceBuilder::scope(std::string_view name, std::optional<int> layer_index) {
  TracedScope scope;
  if (!open_.empty()) scope.parent = open_.back();
  if (scope.parent) scope.path = trace_.scopes[*scope.parent].path + ".";
  scope.path += name;
  if (layer_index) scope.path.append(".").append(std::to_string(*layer_index));
  scope.first_op = trace_.ops.end_id();
  const ScopeId id = trace_.scopes.end_id();
  if (layer_index) trace_.blocks.push_back({id, std::string(name), *layer_index});
  trace_.scopes.push_back(std::move(scope));
  open_.push_back(id);
  return OpenScope(*this, id);
}

void TraceBuilder::close(ScopeId scope) {
  trace_.scopes[scope].end_op = trace_.ops.end_id();
  open_.pop_back();
}

ValueId TraceBuilder::parameter(Shape shape) {
  const ValueId value = outside(std::move(shape), trace_.dtype, /*needs_grad=*/true);
  trace_.values[value].is_parameter = true;
  return value;
}

ValueId TraceBuilder::outside(Shape shape, std::string dtype, bool needs_grad) {
  const StorageId storage = add_storage(shape, dtype);
  const ValueId value = add_value(std::nullopt, storage, std::move(shape), std::move(dtype));
  needs_grad_[value] = needs_grad;
  return value;
}

std::vector<ValueId> TraceBuilder::op(std::string name, std::vector<ValueId> inputs,
                                      std::vector<Shape> output_shapes, const Saves& saves) {
  Node node;
  bool grad = false;
  for (const ValueId input : inputs) grad = grad || needs_grad(input);
  if (grad) pack_inputs(node, inputs, saves);
  node.op = add_op(std::move(name), inputs);
  std::vector<ValueId> outputs;
  for (Shape& output_shape : output_shapes) {
    const StorageId storage = add_storage(output_shape, trace_.dtype);
    outputs.push_back(add_value(node.op, storage, std::move(output_shape), trace_.dtype));
    needs_grad_[outputs.back()] = grad;
  }
  trace_.ops[node.op].outputs = outputs;
  if (!grad) return outputs;
  for (const int position : saves.outputs)
    pack(node, outputs.at(static_cast<std::size_t>(position)));
  nodes_.push_back(std::move(node));
  return outputs;
}

ValueId TraceBuilder::call(std::string name, std::vector<ValueId> inputs, Shape shape,
                           const Saves& saves) {
  return op(std::move(name), std::move(inputs), {std::move(shape)}, saves).front();
}

ValueId TraceBuilder::view(std::string name, ValueId input, Shape shape) {
  const OpId op = add_op(std::move(name), {input});
  const TracedValue& source = trace_.values[input];
  const ValueId value = add_value(op, source.storage, std::move(shape), source.dtype);
  trace_.ops[op].outputs = {value};
  trace_.ops[op].is_view = true;
  needs_grad_[value] = needs_grad(input);
  if (needs_grad(input)) nodes_.push_back({op, {}});
  return value;
}

void TraceBuilder::in_place(std::string name, std::vector<ValueId> inputs, const Saves& saves) {
  Node node;
  bool grad = false;
  for (const ValueId input : inputs) grad = grad || needs_grad(input);
  if (grad) pack_inputs(node, inputs, saves);
  node.op = add_op(std::move(name), inputs);
  const StorageId written = trace_.values[inputs.at(0)].storage;
  trace_.ops[node.op].writes = {written};
  ++versions_[written];
  needs_grad_[inputs[0]] = grad;
  if (grad) nodes_.push_back(std::move(node));
}

void TraceBuilder::wait(ValueId value) { add_op("_c10d_functional::wait_tensor", {value}); }

void TraceBuilder::last_output_is(std::string dtype) {
  for (const ValueId value : trace_.ops.back().outputs) {
    TracedValue& output = trace_.values[value];
    trace_.storages[output.storage].bytes = {num_elements(output.shape) * element_bytes(dtype)};
    output.dtype = dtype;
    needs_grad_[value] = false;
  }
}

void TraceBuilder::last_op_draws() { trace_.ops.back().draws_random = true; }

bool TraceBuilder::was_packed(ValueId value) const { return packed_[trace_.values[value].storage]; }

const Shape& TraceBuilder::shape(ValueId value) const { return trace_.values[value].shape; }

// Frees each storage one op after its last use, as a program that drops values at once would.
void TraceBuilder::free_storages() {
  IdTable<StorageId, OpId> last_use(trace_.storages.size());
  IdTable<StorageId, bool> from_outside(trace_.storages.size(), false);
  for (const TracedValue& value : trace_.values) {
    OpId& last = last_use[value.storage];
    if (value.producer) {
      last = std::max(last, *value.producer);
    } else {
      from_outside[value.storage] = true;
    }
  }
  for (const OpId op : trace_.ops.ids()) {
    for (const TracedUse& use : trace_.ops[op].inputs) {
      last_use[trace_.values[use.value].storage] = op;
    }
  }
  for (const StorageId id : trace_.storages.ids()) {
    if (from_outside[id]) continue;
    trace_.storages[id].freed_at = std::min(last_use[id] + 1, trace_.ops.end_id());
  }
}

Trace TraceBuilder::finish() {
  free_storages();
  Gradients gradients(trace_);
  trace_.backward.push_back(op_event("aten::ones_like", {4}));
  BackwardEvent latest = trace_.backward.back();
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const TracedOp& op = trace_.ops[node->op];
    for (const PackId pack : node->packs) {
      trace_.backward.push_back(event_of(BackwardEvent::Kind::kDemand, pack));
      trace_.backward.back().scope = op.scope;
      trace_.backward.back().other_bytes = latest.other_bytes;
      trace_.backward.back().gradient_bytes = latest.gradient_bytes;
    }
    for (const TracedUse& input : op.inputs) {
      if (!needs_grad(input.value)) continue;
      gradients.add(input.value);
      trace_.backward.push_back(op_event(backward_name(op), gradients.current()));
      trace_.backward.back().gradient_bytes = gradients.of_parameters();
      trace_.backward.back().scope = op.scope;
      latest = trace_.backward.back();
    }
    for (const ValueId output : op.outputs) {
      if (!op.is_view) gradients.drop(output);
    }
    for (const PackId pack : node->packs) {
      trace_.backward.push_back(event_of(BackwardEvent::Kind::kRelease, pack));
    }
  }
  trace_.gradient_bytes = gradients.of_parameters();
  for (const TracedValue& value : trace_.values) {
    if (value.producer) continue;
    const Bytes bytes = trace_.storages[value.storage].bytes;
    (value.is_parameter ? trace_.parameter_bytes : trace_.constant_bytes) += bytes;
    if (!value.is_parameter) continue;
    const std::int64_t elements = num_elements(value.shape);
    const auto same = std::find_if(
        trace_.parameters.begin(), trace_.parameters.end(), [&](const TracedParameters& known) {
          return known.elements == elements && known.dtype == value.dtype;
        });
    if (same == trace_.parameters.end()) {
      trace_.parameters.push_back({elements, value.dtype, 1});
    } else {
      ++same->count;
    }
  }
  return std::move(trace_);
}

ValueId TraceBuilder::add_value(std::optional<OpId> producer, StorageId storage, Shape shape,
                                std::string dtype) {
  TracedValue value;
  value.producer = producer;
  value.storage = storage;
  value.shape = std::move(shape);
  value.dtype = std::move(dtype);
  trace_.values.push_back(std::move(value));
  needs_grad_.push_back(false);
  return trace_.values.end_id() - 1;
}

StorageId TraceBuilder::add_storage(const Shape& shape, std::string_view dtype) {
  trace_.storages.push_back({Bytes{num_elements(shape) * element_bytes(dtype)}});
  versions_.push_back(0);
  packed_.push_back(false);
  return trace_.storages.end_id() - 1;
}

OpId TraceBuilder::add_op(std::string name, const std::vector<ValueId>& inputs) {
  TracedOp op;
  op.op_class = op_class_of(name.substr(0, name.find('.')));
  op.name = std::move(name);
  if (!open_.empty()) op.scope = open_.back();
  for (const ValueId input : inputs) op.inputs.push_back({input, version_of(input)});
  if (op.op_class == OpClass::kMatmul && inputs.size() >= 2 && !shape(inputs.back()).empty()) {
    op.flops = 2 * num_elements(shape(inputs[inputs.size() - 2])) * shape(inputs.back()).back();
  }
  trace_.ops.push_back(std::move(op));
  return trace_.ops.end_id() - 1;
}

void TraceBuilder::pack_inputs(Node& node, const std::vector<ValueId>& inputs, const Saves& saves) {
  for (const int position : saves.inputs) pack(node, inputs.at(static_cast<std::size_t>(position)));
}

void TraceBuilder::pack(Node& node, ValueId value) {
  node.packs.push_back(trace_.packs.end_id());
  trace_.packs.push_back({value, version_of(value), trace_.ops.end_id()});
  packed_[trace_.values[value].storage] = true;
}

std::int32_t TraceBuilder::version_of(ValueId value) const {
  return versions_[trace_.values[value].storage];
}

}  // namespace rematch::testing
