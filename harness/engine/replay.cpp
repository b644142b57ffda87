#include "harness/engine/replay.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <optional>

#include "harness/engine/fault.h"
#include "harness/engine/generator_state.h"
#include "harness/engine/interception.h"
#include "harness/engine/recording.h"
#include "harness/engine/stand_in.h"

namespace rematch {
namespace {

// Where recorded ops run: below autograd, out of sight of modes, with grad mode as in forward.
struct BelowAutograd {
  c10::impl::ExcludeDispatchKeyGuard below{c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                           c10::DispatchKeySet(c10::DispatchKey::Fake)};
  at::AutoGradMode grad_mode{true};
};

}  // namespace

Replay::Replay(Record& record, const std::string& region, const std::vector<WantedValue>& wanted,
               Extent extent, std::int32_t num_ops, KeptValues kept_values, ReplayBuffers& buffers)
    : record_(record),
      region_(region),
      kept_values_(kept_values),
      extent_(extent),
      wanted_(wanted),
      tensors_(buffers.tensors),
      num_uses_(buffers.num_uses),
      planned_(buffers.planned),
      wanted_versions_(buffers.wanted_versions),
      pending_(buffers.pending),
      stack_(buffers.stack) {
  stack_.clear();  // an op that threw leaves its arguments
  tensors_.clear();
  tensors_.resize(record.values.size());
  num_uses_.assign(record.values.size(), 0);
  planned_.assign(record.ops.size(), 0);
  forget_stale_kept_values();
  for (const WantedValue& value : wanted) ++num_uses_[value.value];
  if (extent == Extent::kClosure) {
    plan_closure(wanted);
  } else {
    plan_prefix(num_ops);
  }
  adopt_kept_values();
}

// Backwards over the record: an op is planned if a later planned reader, or backward, wants one of
// its outputs, or a version that it wrote. Kept values end the walk.
void Replay::plan_closure(const std::vector<WantedValue>& wanted) {
  wanted_versions_.assign(record_.storages.size(), 0);
  auto want = [&](std::int32_t value, std::int32_t version) {
    std::int32_t& storage_version = wanted_versions_[record_.values[value].storage];
    storage_version = std::max(storage_version, version);
  };
  for (const WantedValue& value : wanted) want(value.value, value.version);
  std::size_t next_write = record_.writes.size();
  for (std::size_t i = record_.ops.size(); i-- > 0;) {
    const RecordedOp& op = record_.ops[i];
    bool needed = false;
    while (next_write > 0 && record_.writes[next_write - 1].op >= static_cast<std::int32_t>(i)) {
      const RecordedWrite& write = record_.writes[--next_write];
      needed |= wanted_versions_[write.storage] >= write.version;
    }
    for (std::size_t j = op.first_output; j < op.first_output + op.num_outputs; ++j) {
      needed |= is_wanted_output(record_.outputs[j], static_cast<std::int32_t>(i));
    }
    if (!needed || op.side_effect) continue;
    planned_[i] = 1;
    for (std::size_t j = op.first_use; j < op.first_use + op.num_uses; ++j) {
      ++num_uses_[record_.uses[j].value];
      want(record_.uses[j].value, record_.uses[j].version);
    }
    plan_waits(static_cast<std::int32_t>(i));
  }
}

// An op's own result that someone reads; what an in-place op returns belongs to an earlier op.
bool Replay::is_wanted_output(std::int32_t value, std::int32_t op) const {
  if (value < 0 || record_.values[value].op != op) return false;
  return num_uses_[value] > 0 && !record_.values[value].kept.defined();
}

void Replay::plan_prefix(std::int32_t num_ops) {
  for (std::int32_t i = 0; i < num_ops; ++i) {
    const RecordedOp& op = record_.ops[i];
    if (op.side_effect || is_kept(op)) continue;
    planned_[i] = 1;
    for (std::size_t j = op.first_use; j < op.first_use + op.num_uses; ++j) {
      ++num_uses_[record_.uses[j].value];
    }
  }
  if (record_.waits.empty()) return;
  for (std::int32_t i = 0; i < num_ops; ++i) {
    if (planned_[i] != 0) plan_waits(i);
  }
}

// Plans what completes a collective that is planned, see Note [A collective and its wait].
void Replay::plan_waits(std::int32_t start) {
  for (const RecordedWait& wait : record_.waits) {
    if (wait.start != start || wait.wait == kNoOp || planned_[wait.wait] != 0) continue;
    planned_[wait.wait] = 1;
    ++num_uses_[record_.uses[record_.ops[wait.wait].first_use].value];
  }
}

bool Replay::is_kept(const RecordedOp& op) const {
  bool any = false;
  for (std::size_t j = op.first_output; j < op.first_output + op.num_outputs; ++j) {
    const std::int32_t value = record_.outputs[j];
    if (value < 0) continue;
    if (!record_.values[value].kept.defined()) return false;
    any = true;
  }
  return any && !op.in_place && !op.facts->returns_alias;
}

// A kept value that was written to after the region ended is not what its op computed: it is
// planned for like any other.
void Replay::forget_stale_kept_values() {
  if (has_fault(Fault::kStaleValue)) return;
  for (RecordedValue& value : record_.values) {
    const bool is_ours = value.op != kNoOp && value.kept.defined() && !value.constant;
    if (is_ours && version_of(value.kept) != value.kept_version) value.kept.reset();
  }
}

// Kept values become available; those that nobody needs are freed at once.
void Replay::adopt_kept_values() {
  for (std::size_t value = 0; value < record_.values.size(); ++value) {
    RecordedValue& recorded = record_.values[value];
    if (recorded.op == kNoOp || !recorded.kept.defined()) continue;
    const bool give_away = kept_values_ == KeptValues::kTake && !recorded.constant;
    at::Tensor kept = give_away ? std::move(recorded.kept) : recorded.kept;
    if (num_uses_[value] > 0) tensors_[value] = std::move(kept);
  }
}

void Replay::run_all() {
  const ObservedRegion observed(region_, Phase::kRecompute);
  BelowAutograd guard;
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    if (planned_[i] != 0) execute(static_cast<std::int32_t>(i));
  }
}

void Replay::materialize(const WantedValue& wanted) {
  pending_.clear();
  require(wanted.value, wanted.version);
  if (pending_.empty()) return;
  std::sort(pending_.begin(), pending_.end());
  const ObservedRegion observed(region_, Phase::kRecompute);
  BelowAutograd guard;
  for (const std::int32_t op : pending_) execute(op);
}

// Adds to `pending_` the planned ops that a read of `value` at `version` waits for.
void Replay::require(std::int32_t value, std::int32_t version) {
  const RecordedValue& recorded = record_.values[value];
  if (recorded.op != kNoOp && !tensors_[value].defined()) require_op(recorded.op);
  if (version == 0 || record_.writes.empty()) return;
  for (const RecordedWrite& write : record_.writes) {
    if (write.storage == recorded.storage && write.version <= version) require_op(write.op);
  }
}

void Replay::require_op(std::int32_t op_index) {
  if (planned_[op_index] != 1) return;
  planned_[op_index] = 2;  // in `pending_`
  pending_.push_back(op_index);
  const RecordedOp& op = record_.ops[op_index];
  for (std::size_t j = op.first_use; j < op.first_use + op.num_uses; ++j) {
    require(record_.uses[j].value, record_.uses[j].version);
  }
  for (const RecordedWait& wait : record_.waits) {
    if (wait.start == op_index && wait.wait != kNoOp) require_op(wait.wait);
  }
  // Also of an op that is asked for another of its results than what it wrote.
  auto write = std::ranges::lower_bound(record_.writes, op_index, {}, &RecordedWrite::op);
  for (; write != record_.writes.end() && write->op == op_index; ++write) {
    require_earlier_readers(*write);
  }
}

// Once a storage is written to, what it held before is gone: planned ops that read it go first.
void Replay::require_earlier_readers(const RecordedWrite& write) {
  for (std::int32_t i = 0; i < write.op; ++i) {
    if (planned_[i] != 1) continue;
    const RecordedOp& op = record_.ops[i];
    for (std::size_t j = op.first_use; j < op.first_use + op.num_uses; ++j) {
      const RecordedUse& use = record_.uses[j];
      if (record_.values[use.value].storage == write.storage && use.version < write.version) {
        require_op(i);
        break;
      }
    }
  }
}

void Replay::execute(std::int32_t op_index) {
  const RecordedOp& op = record_.ops[op_index];
  if (!may_run(op_index)) return;
  planned_[op_index] = 0;
  stack_.clear();
  fill_arguments(op, stack_);
  std::optional<GeneratorStateGuard> generator;
  if (op.generator_state >= 0 && !has_fault(Fault::kGeneratorNotRestored)) {
    generator.emplace(record_.generator_states[op.generator_state]);
  }
  execute_recorded(op.facts->op, op.keys, &stack_);
  store_outputs(op, stack_);
  stack_.clear();
}

void Replay::fill_arguments(const RecordedOp& op, torch::jit::Stack& stack) {
  using Kind = OpFacts::ArgumentKind;
  std::size_t use = op.first_use;
  const std::size_t end = op.first_use + op.num_uses;
  for (std::size_t position = 0; position < op.facts->arguments.size(); ++position) {
    const c10::IValue& recorded = record_.arguments[op.first_argument + position];
    const bool has_uses = use < end && record_.uses[use].argument == position;
    const Kind kind = op.facts->arguments[position];
    if (kind == Kind::kTensor && has_uses) {
      stack.emplace_back(argument(op, record_.uses[use++]));
    } else if (kind == Kind::kTensorList && recorded.isInt()) {
      c10::List<at::Tensor> list;
      list.resize(static_cast<std::size_t>(recorded.toInt()));
      for (; use < end && record_.uses[use].argument == position; ++use) {
        list.set(static_cast<std::size_t>(record_.uses[use].item), argument(op, record_.uses[use]));
      }
      stack.emplace_back(std::move(list));
    } else if (kind == Kind::kOptionalTensorList && recorded.isInt()) {
      c10::List<std::optional<at::Tensor>> list;
      list.resize(static_cast<std::size_t>(recorded.toInt()));
      for (; use < end && record_.uses[use].argument == position; ++use) {
        list.set(static_cast<std::size_t>(record_.uses[use].item), argument(op, record_.uses[use]));
      }
      stack.emplace_back(std::move(list));
    } else if (kind == Kind::kTensor && recorded.isNone()) {
      stack.emplace_back();  // an optional tensor that was not given
    } else {
      stack.push_back(recorded);
    }
  }
}

at::Tensor Replay::argument(const RecordedOp& op, const RecordedUse& use) {
  const RecordedValue& value = record_.values[use.value];
  TORCH_INTERNAL_ASSERT(value.op == kNoOp || tensors_[use.value].defined(), "rematch: region ",
                        region_, ": replay of ", op.facts->name, " lacks an input");
  at::Tensor tensor = value.op == kNoOp ? value.kept : take(use.value);
  if (value.outside < 0) return tensor;
  if (gets_scratch(op, use)) return scratch_like(tensor);
  const at::Tensor* copy = record_.copies.empty() ? nullptr : record_.copy_of(use);
  return copy == nullptr ? tensor : *copy;
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

void Replay::store_output(std::int32_t value, at::Tensor tensor) {
  if (value < 0 || record_.values[value].op == kNoOp) return;
  if (num_uses_[value] > 0) tensors_[value] = std::move(tensor);
}

at::Tensor Replay::take(std::int32_t value) {
  if (--num_uses_[value] == 0) return std::move(tensors_[value]);
  return tensors_[value];
}

void Replay::drop_use(std::int32_t value) {
  if (--num_uses_[value] == 0) tensors_[value].reset();
}

}  // namespace rematch
