#include "harness/engine/record/op_facts.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "policies/trace/op_class.h"
#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

std::string display_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

OpFacts::ArgumentKind kind_of(const c10::Argument& argument) {
  using Kind = OpFacts::ArgumentKind;
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (type->isSubtypeOf(*c10::TensorType::get())) return Kind::kTensor;
  if (auto list = type->cast<c10::ListType>()) {
    if (list->getElementType()->isSubtypeOf(*c10::TensorType::get())) return Kind::kTensorList;
    if (auto optional = list->getElementType()->cast<c10::OptionalType>()) {
      if (optional->getElementType()->isSubtypeOf(*c10::TensorType::get())) {
        return Kind::kOptionalTensorList;
      }
    }
  }
  return Kind::kOther;
}

bool is_factory_in_likeness(const std::string& name) {
  return name.starts_with("aten::new_") || (name.starts_with("aten::") && name.ends_with("_like"));
}

// Views that autograd does not differentiate: their output_differentiability is False in LibTorch's
// derivatives.yaml.
bool is_detached_view(const std::string& name) {
  static const std::unordered_set<std::string> names = {
      "aten::detach",       "aten::_indices",    "aten::indices",      "aten::_values",
      "aten::crow_indices", "aten::col_indices", "aten::ccol_indices", "aten::row_indices"};
  return names.contains(name);
}

bool is_generator(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == c10::TypeKind::GeneratorType;
}

void add_side_writes(OpFacts& facts) {
  const SideWrites* writes = side_writes_of(facts.schema->name());
  if (writes == nullptr) return;
  facts.side_feeds_results = writes->feeds_results;
  for (std::size_t position = 0; position < facts.schema->arguments().size(); ++position) {
    const std::string& name = facts.schema->arguments()[position].name();
    if (name == writes->only_if) facts.side_if = static_cast<std::int32_t>(position);
    if (std::find(writes->arguments.begin(), writes->arguments.end(), name) !=
        writes->arguments.end()) {
      facts.side_written.push_back(static_cast<std::uint16_t>(position));
    }
  }
}

OpFacts read_facts(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OpFacts facts{.op = op, .schema = &schema, .name = display_name(op.operator_name())};
  facts.num_returns = schema.returns().size();
  facts.mutates = schema.is_mutable();
  facts.may_draw = op.hasTag(at::Tag::nondeterministic_seeded);
  facts.is_empty_factory = is_empty_factory(schema.name());
  facts.collective = collective_part(schema.name());
  facts.is_detached = is_detached_view(schema.name());
  facts.makes_alike = is_factory_in_likeness(schema.name());
  for (std::size_t position = 0; position < schema.arguments().size(); ++position) {
    const c10::Argument& argument = schema.arguments()[position];
    const auto kind = kind_of(argument);
    facts.arguments.push_back(kind);
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      facts.written.push_back(static_cast<std::uint16_t>(position));
      facts.mutates_list |= kind != OpFacts::ArgumentKind::kTensor;
    }
    const auto index = static_cast<std::int32_t>(position);
    if (argument.name() == "dropout_p") facts.dropout_argument = index;
    if (is_generator(argument)) facts.generator_argument = index;
    if (argument.name() == "device") facts.device_argument = index;
  }
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) {
      facts.returns_alias = true;
    }
  }
  facts.may_draw = facts.may_draw || facts.generator_argument.has_value();
  add_side_writes(facts);
  facts.has_effects = facts.mutates || !facts.side_written.empty() || facts.may_draw ||
                      facts.collective != CollectivePart::kNothing;
  return facts;
}

void add_silent_write(OpFacts& facts, std::size_t argument) {
  const auto position = static_cast<std::uint16_t>(argument);
  facts.side_written.push_back(position);
  facts.silently_written.push_back(position);
  facts.side_feeds_results = true;
  facts.has_effects = true;
}

void make_unrepeatable(OpFacts& facts) {
  facts.unrepeatable = true;
  facts.has_effects = true;
}

// Facts that plans and traces have declared: which ops must not be repeated, and which arguments an
// op writes although its schema does not say so. Stored by name, because an op may be registered
// later. Leaked, because threads may still record while the process ends.
struct MarkedOps {
  std::mutex mutex;
  std::unordered_set<std::string> unrepeatable;
  std::unordered_map<std::string, std::vector<int>> silently_written;
};

MarkedOps& marked_ops() {
  static auto* marked = new MarkedOps;
  return *marked;
}

// Writes only the fields that change, because another thread may be reading the facts.
void apply_marks(OpFacts& facts) {
  MarkedOps& marked = marked_ops();
  const std::lock_guard<std::mutex> lock(marked.mutex);
  if (marked.unrepeatable.contains(facts.name) && !facts.unrepeatable) make_unrepeatable(facts);
  const auto written = marked.silently_written.find(facts.name);
  if (written == marked.silently_written.end()) return;
  for (const int argument : written->second) {
    const auto position = static_cast<std::size_t>(argument);
    if (position >= facts.arguments.size() ||
        facts.arguments[position] != OpFacts::ArgumentKind::kTensor || writes_to(facts, position)) {
      continue;
    }
    add_silent_write(facts, position);
  }
}

using Table = std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpFacts>>;

OpFacts& intern(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static auto* table =
      new Table;  // leaked, because threads may still record while the process ends
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<OpFacts>& facts = (*table)[&op.schema()];
  if (facts == nullptr) {
    facts = std::make_unique<OpFacts>(read_facts(op));
    apply_marks(*facts);
    facts->id = op_id(facts->name);
  }
  return *facts;
}

}  // namespace

bool has_side_writes(const OpFacts& facts, const torch::jit::Stack& stack) {
  if (facts.side_written.empty()) return false;
  const std::size_t base = stack.size() - facts.arguments.size();
  if (facts.side_if.has_value()) {
    const c10::IValue& condition = stack[base + static_cast<std::size_t>(*facts.side_if)];
    if (!condition.isBool() || !condition.toBool()) return false;
  }
  return std::any_of(facts.side_written.begin(), facts.side_written.end(),
                     [&](std::uint16_t position) {
                       const c10::IValue& argument = stack[base + position];
                       return argument.isTensor() && argument.toTensor().defined();
                     });
}

std::string group_of_collective(const torch::jit::Stack& stack) {
  return !stack.empty() && stack.back().isString() ? stack.back().toStringRef() : "";
}

bool writes_to(const OpFacts& facts, std::size_t position) {
  const auto has = [position](const std::vector<std::uint16_t>& positions) {
    return std::find(positions.begin(), positions.end(), position) != positions.end();
  };
  return has(facts.written) || has(facts.side_written);
}

std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  std::vector<at::Tensor> tensors;
  if (!value.isList()) return tensors;
  for (const c10::IValue& item : value.toListRef()) {
    for (at::Tensor& tensor : tensors_in(item)) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Bytes bytes_of_tensors(const c10::IValue& value) {
  Bytes bytes;
  for (const at::Tensor& tensor : tensors_in(value)) {
    if (tensor.defined()) bytes += Bytes{static_cast<std::int64_t>(tensor.nbytes())};
  }
  return bytes;
}

const OpFacts& facts_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, const OpFacts*> seen;
  const OpFacts*& facts = seen[&op.schema()];
  if (facts == nullptr) facts = &intern(op);
  return *facts;
}

const OpFacts* find_facts(const std::string& name) {
  const std::size_t after_namespace = name.find("::");
  const std::size_t dot =
      after_namespace == std::string::npos ? after_namespace : name.find('.', after_namespace);
  const c10::OperatorName op_name(name.substr(0, dot),
                                  dot == std::string::npos ? "" : name.substr(dot + 1));
  const auto op = c10::Dispatcher::singleton().findSchema(op_name);
  return op.has_value() ? &facts_of(*op) : nullptr;
}

std::int32_t op_id(std::string_view name) {
  static std::mutex mutex;
  static auto* ids =
      new std::unordered_map<std::string, std::int32_t>;  // leaked, like the maps above
  const std::lock_guard<std::mutex> lock(mutex);
  const auto next = static_cast<std::int32_t>(ids->size());
  return ids->try_emplace(std::string(one_name(name)), next).first->second;
}

bool mark_unrepeatable(const std::string& name) {
  const OpFacts* const found = find_facts(name);
  if (found == nullptr) return false;
  make_unrepeatable(intern(found->op));
  return true;
}

namespace {
std::atomic<std::int64_t> silent_writers{0};
}  // namespace

void mark_silent_writer(const OpFacts& found, std::size_t argument) {
  add_silent_write(intern(found.op), argument);
  silent_writers.fetch_add(1);
}

std::int64_t num_silent_writers() { return silent_writers.load(); }

void mark_hidden_effects(const HiddenEffects& effects) {
  std::vector<std::string> names = effects.kept_ops;
  {
    MarkedOps& marked = marked_ops();
    const std::lock_guard<std::mutex> lock(marked.mutex);
    marked.unrepeatable.insert(effects.kept_ops.begin(), effects.kept_ops.end());
    for (const SilentWriter& writer : effects.silent_writers) {
      std::vector<int>& arguments = marked.silently_written[writer.op];
      arguments.insert(arguments.end(), writer.arguments.begin(), writer.arguments.end());
      names.push_back(writer.op);
    }
  }
  for (const std::string& name : names) {
    if (const OpFacts* const found = find_facts(name)) apply_marks(intern(found->op));
  }
}

// This list was made by calling every op of LibTorch 2.11 that has a CPU kernel and comparing the
// bytes of its arguments before and after. Ops without a CPU kernel were found by searching the
// schemas for arguments that hold state between calls. Some listed arguments are also marked by
// their schema. Without the list, recompute would never run their ops.
const std::vector<SideWrites>& all_side_writes() {
  static const auto* all = new std::vector<SideWrites>{
      {"aten::native_batch_norm", {"running_mean", "running_var"}, "training"},
      {"aten::cudnn_batch_norm", {"running_mean", "running_var"}, "training"},
      {"aten::miopen_batch_norm", {"running_mean", "running_var"}, "training"},
      {"aten::_native_batch_norm_legit", {"running_mean", "running_var"}, "training"},
      {"aten::_batch_norm_with_update", {"running_mean", "running_var"}, ""},
      {"aten::batch_norm_update_stats", {"running_mean", "running_var"}, ""},
      {"aten::batch_norm_gather_stats", {"running_mean", "running_var"}, ""},
      {"aten::batch_norm_gather_stats_with_counts", {"running_mean", "running_var"}, ""},
      {"aten::rrelu_with_noise", {"noise"}, ""},
      {"aten::rrelu_with_noise_", {"noise"}, ""},
      {"aten::_cudnn_rnn", {"dropout_state"}, "train", /*feeds_results=*/true},
      {"aten::miopen_rnn", {"dropout_state"}, "train", /*feeds_results=*/true},
      {"onednn::qconv2d_pointwise", {"qaccum"}, "", /*feeds_results=*/true},
      {"onednn::qlinear_pointwise", {"other"}, "", /*feeds_results=*/true},
  };
  return *all;
}

const SideWrites* side_writes_of(std::string_view op) {
  const auto& all = all_side_writes();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const SideWrites& writes) { return writes.op == op; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace rematch
