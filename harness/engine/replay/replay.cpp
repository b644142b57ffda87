#include "harness/engine/replay/replay.h"

#include <ATen/core/grad_mode.h>

#include <optional>

#include "harness/engine/fault.h"
#include "harness/engine/interception.h"
#include "harness/engine/record/generator_state.h"
#include "harness/engine/record/storage_content.h"
#include "harness/engine/recording.h"
#include "harness/engine/replay/stand_in.h"

namespace rematch {
namespace {

// Recorded ops run below autograd, where no mode sees them. Grad mode starts enabled, because most
// ops were recorded with grad mode and changes of context cost time.
struct BelowAutograd {
  UnseenGuard unseen;
  at::AutoGradMode grad_mode{true};
};

}  // namespace

Replay::Replay(Record& record, const std::string& region, const std::vector<WantedValue>& wanted,
               Extent extent, std::int32_t num_ops, const std::vector<int>& skipped,
               KeptValues kept_values, ReplayBuffers& buffers)
    : record_(record),
      region_(region),
      kept_values_(kept_values),
      extent_(extent),
      wanted_(wanted),
      tensors_(buffers.tensors),
      planner_(RecordIntegers(record), buffers.tables),
      stack_(buffers.stack) {
  stack_.clear();  // an op that threw may have left its arguments on the stack
  tensors_.clear();
  tensors_.resize(record.values.size());
  hold_kept_values();
  for (const WantedValue& value : wanted) planner_.await(value.value);
  if (extent == Extent::kClosure) {
    planner_.plan_closure(wanted);
  } else {
    for (const int op : skipped) {
      const auto index = static_cast<std::size_t>(op);
      if (index >= record.num_program_ops()) break;
      planner_.skip(static_cast<std::int32_t>(record.program_op(index)));
    }
    planner_.plan_prefix(num_ops, wanted);
  }
  adopt_kept_values();
}

// Drops a kept value that was written to after the region ended, because the value no longer equals
// the result of its op. Replay then recomputes the value like any other.
void Replay::hold_kept_values() {
  for (std::size_t id = 0; id < record_.values.size(); ++id) {
    RecordedValue& value = record_.values[id];
    if (!value.op.has_value() || !value.kept.defined()) continue;
    const bool is_stale = !value.constant && version_of(value.kept) != value.kept_version;
    if (is_stale && !has_fault(Fault::kStaleValue)) {
      value.kept.reset();
    } else {
      planner_.hold(static_cast<std::int32_t>(id));
    }
  }
}

// Takes the kept values from the record, and frees those that the replay does not need.
void Replay::adopt_kept_values() {
  for (std::size_t id = 0; id < record_.values.size(); ++id) {
    const auto value = static_cast<std::int32_t>(id);
    if (!planner_.is_there(value)) continue;
    RecordedValue& recorded = record_.values[id];
    if (planner_.is_needed(value) && recorded.constant) check_constant(value);
    const bool give_away = kept_values_ == KeptValues::kTake && !recorded.constant;
    at::Tensor kept = give_away ? std::move(recorded.kept) : recorded.kept;
    const bool is_written_again =
        recorded.constant && record_.storages[recorded.storage].version > 0;
    if (planner_.is_needed(value) && is_written_again) kept = on_copied_storage(kept);
    if (planner_.is_needed(value)) {
      tensors_[id] = std::move(kept);
    } else {
      planner_.release(value);
    }
  }
}

// Throws Refused if the program wrote to the constant's storage after the region.
void Replay::check_constant(std::int32_t value) const {
  const RecordedValue& constant = record_.values[value];
  if (!record_.shares_kept(value) || version_of(constant.kept) == constant.kept_version) return;
  throw Refused("region " + region_ + ": " + describe_tensor(constant.kept) + ", a result of " +
                record_.ops[*constant.op].facts->name +
                " that the region keeps because it cannot be recomputed, was changed in place "
                "before backward; change it after backward, or write to a copy");
}

void Replay::run_all() { run(planner_.list_planned()); }

void Replay::materialize(const WantedValue& wanted) { run(planner_.list_missing(wanted)); }

void Replay::run(const std::vector<std::int32_t>& ops) {
  if (ops.empty()) return;
  const ObservedRegion observed(region_, Phase::kRecompute);
  run_planned(ops);
}

void Replay::run_unobserved() {
  is_observed_ = false;
  run_planned(planner_.list_planned());
  is_observed_ = true;
}

void Replay::run_planned(const std::vector<std::int32_t>& ops) {
  BelowAutograd guard;
  KernelContextGuard context(record_.contexts);
  for (const std::int32_t op : ops) {
    if (planner_.is_planned(op)) execute(op, context);
  }
}

void Replay::execute(std::int32_t op_index, KernelContextGuard& context) {
  const RecordedOp& op = record_.ops[op_index];
  if (!may_run(op_index)) return;
  if (op.stream.has_value()) check_stream(op);
  planner_.start(op_index);
  stack_.clear();
  fill_arguments(op, stack_);
  context.enter(op.context);
  std::optional<GeneratorStateGuard> generator;
  if (op.generator_state.has_value() && !has_fault(Fault::kGeneratorNotRestored)) {
    generator.emplace(record_.generator_states[*op.generator_state]);
  }
  if (is_observed_) {
    execute_recorded(op.facts->op, op.keys, &stack_);
  } else {
    execute_unobserved(op.facts->op, op.keys, &stack_);
  }
  if (record_.differences != nullptr) compare_results(op_index);
  store_outputs(op, stack_);
  stack_.clear();
}

void Replay::compare_results(std::int32_t op_index) const {
  const auto index = static_cast<std::size_t>(op_index);
  if (index >= record_.result_hashes.size() || record_.result_hashes[index] == 0) return;
  const OpFacts& facts = *record_.ops[op_index].facts;
  if (hash_of_results(facts, stack_) == record_.result_hashes[index]) return;
  record_.differences->add(region_, record_.program_index(op_index), facts.name);
}

void Replay::fill_arguments(const RecordedOp& op, torch::jit::Stack& stack) {
  using Kind = OpFacts::ArgumentKind;
  std::size_t use = op.first_use;
  const std::size_t end = op.first_use + op.num_uses;
  const auto fill_list = [&](auto list, std::int64_t size, std::size_t position) {
    list.resize(static_cast<std::size_t>(size));
    for (; use < end && record_.uses[use].argument == position; ++use) {
      list.set(static_cast<std::size_t>(*record_.uses[use].item), argument(op, record_.uses[use]));
    }
    stack.emplace_back(std::move(list));
  };
  for (std::size_t position = 0; position < op.facts->arguments.size(); ++position) {
    const c10::IValue& recorded = record_.arguments[op.first_argument + position];
    const bool has_uses = use < end && record_.uses[use].argument == position;
    const Kind kind = op.facts->arguments[position];
    if (kind == Kind::kTensor && has_uses) {
      stack.emplace_back(argument(op, record_.uses[use++]));
    } else if (kind == Kind::kTensorList && recorded.isInt()) {
      fill_list(c10::List<at::Tensor>(), recorded.toInt(), position);
    } else if (kind == Kind::kOptionalTensorList && recorded.isInt()) {
      fill_list(c10::List<std::optional<at::Tensor>>(), recorded.toInt(), position);
    } else if (kind == Kind::kTensor && recorded.isNone()) {
      stack.emplace_back();  // an optional tensor argument without a value
    } else {
      stack.push_back(recorded);
    }
  }
}

at::Tensor Replay::argument(const RecordedOp& op, const RecordedUse& use) {
  const RecordedValue& value = record_.values[use.value];
  TORCH_INTERNAL_ASSERT(!value.op.has_value() || planner_.is_there(use.value), "rematch: region ",
                        region_, ": replay of ", op.facts->name, " lacks an input");
  at::Tensor tensor = value.op.has_value() ? take(use.value) : record_.outside_argument(use.value);
  if (!value.outside.has_value()) return tensor;
  if (gets_scratch(op, use)) return scratch_like(tensor);
  const at::Tensor* copy = record_.copies.empty() ? nullptr : record_.copy_of(use);
  if (copy == nullptr) return tensor;
  // rematch::restore_part will write to the result, so the result must not be the record's copy.
  return op.takes_parts ? content_of(*copy) : *copy;
}

// See Note [Side writes].
bool Replay::gets_scratch(const RecordedOp& op, const RecordedUse& use) const {
  return op.side_writes && is_side_argument(*op.facts, use) &&
         record_.storages[record_.values[use.value].storage].outside;
}

void Replay::store_outputs(const RecordedOp& op, torch::jit::Stack& stack) {
  std::size_t output = op.first_output;
  for (c10::IValue& result : stack) {
    if (result.isTensor()) {
      store_output(record_.outputs[output++], std::move(result).toTensor());
    } else if (result.isTensorList()) {
      const auto list = result.toTensorList();
      for (std::size_t item = 0; item < list.size(); ++item) {
        store_output(record_.outputs[output++], list.get(item));
      }
    }
  }
}

void Replay::store_output(OptionalIndex value, at::Tensor tensor) {
  if (!value.has_value() || !record_.values[*value].op.has_value()) return;
  if (planner_.make(*value)) tensors_[*value] = std::move(tensor);
}

at::Tensor Replay::take(std::int32_t value) {
  if (planner_.read(value)) return std::move(tensors_[value]);
  return tensors_[value];
}

}  // namespace rematch
