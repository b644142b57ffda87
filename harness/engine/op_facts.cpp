#include "harness/engine/op_facts.h"

#include <memory>
#include <mutex>
#include <unordered_map>

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

bool is_empty_factory(const std::string& name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
}

OpFacts read_facts(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OpFacts facts{.op = op, .schema = &schema, .name = display_name(op.operator_name())};
  facts.num_returns = schema.returns().size();
  facts.mutates = schema.is_mutable();
  facts.may_draw = op.hasTag(at::Tag::nondeterministic_seeded);
  facts.is_empty_factory = is_empty_factory(schema.name());
  for (std::size_t position = 0; position < schema.arguments().size(); ++position) {
    const c10::Argument& argument = schema.arguments()[position];
    const auto kind = kind_of(argument);
    facts.arguments.push_back(kind);
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      if (kind == OpFacts::ArgumentKind::kTensor) {
        facts.written.push_back(static_cast<std::uint16_t>(position));
      } else {
        facts.mutates_list = true;
      }
    }
    const auto index = static_cast<std::int32_t>(position);
    if (argument.name() == "dropout_p" || argument.name() == "p") facts.dropout_argument = index;
    if (argument.name() == "generator") facts.generator_argument = index;
    if (argument.name() == "device") facts.device_argument = index;
  }
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) {
      facts.returns_alias = true;
    }
  }
  return facts;
}

using Table = std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpFacts>>;

const OpFacts& intern(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static auto* table = new Table;  // leaked: threads may still record while the process ends
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<OpFacts>& facts = (*table)[&op.schema()];
  if (facts == nullptr) facts = std::make_unique<OpFacts>(read_facts(op));
  return *facts;
}

}  // namespace

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

}  // namespace rematch
