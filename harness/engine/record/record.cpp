#include "harness/engine/record/record.h"

#include <ATen/ScalarOps.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "harness/engine/fault.h"
#include "harness/engine/interception.h"
#include "harness/engine/record/generator_state.h"
#include "harness/engine/record/op_stream.h"

namespace rematch {
namespace {

// Removes the entries of an op that did not finish.
class Rollback {
 public:
  explicit Rollback(Record& record) : record_(record) { restart(); }
  ~Rollback() {
    if (!done_) undo();
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  std::uint32_t first_argument() const { return static_cast<std::uint32_t>(num_arguments_); }
  std::uint32_t first_use() const { return static_cast<std::uint32_t>(num_uses_); }
  void commit() { done_ = true; }
  void restart() {
    done_ = false;
    num_arguments_ = record_.arguments.size();
    num_uses_ = record_.uses.size();
    num_copies_ = record_.copies.size();
  }
  void undo() {
    done_ = true;
    record_.arguments.resize(num_arguments_);
    record_.uses.erase(record_.uses.begin() + static_cast<std::ptrdiff_t>(num_uses_),
                       record_.uses.end());
    record_.copies.resize(num_copies_);
  }

 private:
  Record& record_;
  std::size_t num_arguments_ = 0;
  std::size_t num_uses_ = 0;
  std::size_t num_copies_ = 0;
  bool done_ = false;
};

// Checks one weak reference in `identities` at each call, in turn. If its tensor or storage is
// dead, removes the reference from `identities` and the address from `known`.
template <typename Impl>
void forget_if_dead(std::vector<c10::weak_intrusive_ptr<Impl>>& identities, std::size_t& next,
                    PointerMap& known) {
  if (identities.empty()) return;
  if (next >= identities.size()) next = 0;
  if (!identities[next].expired()) {
    ++next;
    return;
  }
  known.erase(identities[next]._unsafe_get_target());
  identities[next] = std::move(identities.back());
  identities.pop_back();
}

}  // namespace

at::Tensor without_graph(const at::Tensor& tensor) {
  return without_graph(tensor, tensor.unsafeGetTensorImpl()->version_counter());
}

at::Tensor without_graph(const at::Tensor& tensor, const c10::VariableVersion& counter) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  c10::DispatchKeySet unseen;
  // A tensor subclass copies itself in Python. The copy of any other tensor must be hidden from
  // Python dispatch modes, which would otherwise see an op `detach`.
  const bool is_subclass = impl->key_set().has(c10::DispatchKey::Python);
  // Sparse tensors and subclasses copy themselves by running ops, which do not belong to the
  // region.
  if (is_subclass || !tensor.has_storage()) unseen = unseen.add(c10::DispatchKey::Fake);
  if (!is_subclass && c10::impl::TorchDispatchModeTLS::stack_len() > 0) {
    unseen = unseen.add(c10::DispatchKey::Python);
  }
  std::optional<c10::impl::ExcludeDispatchKeyGuard> guard;
  if (!unseen.empty()) guard.emplace(unseen);
  return at::Tensor(impl->shallow_copy_and_detach(counter, /*allow_tensor_metadata_change=*/true));
}

std::string describe_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << tensor.dtype().name() << " " << tensor.sizes();
  return text.str();
}

void Record::clear() {
  ops.clear();
  arguments.clear();
  uses.clear();
  outputs.clear();
  values.clear();
  storages.clear();
  outside_tensors.clear();
  writes.clear();
  writes_ahead.clear();
  hidden_writes.clear();
  result_hashes.clear();
  copies.clear();
  constant_copies.clear();
  numbers.clear();
  waits.clear();
  contexts.clear();
  generator_states.clear();
  streams.clear();
  stash = nullptr;
}

at::Tensor Record::outside_argument(std::int32_t value) const {
  if (values[value].kept.defined()) return values[value].kept;
  const auto found =
      std::lower_bound(numbers.begin(), numbers.end(), value,
                       [](const RecordedNumber& each, std::int32_t id) { return each.value < id; });
  at::Tensor tensor = c10::scalar_to_tensor(found->number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

const char* Record::change_since_read(std::int32_t value) const {
  const OutsideTensor& outside = outside_tensors[*values[value].outside];
  const at::Tensor& held = values[outside.value].kept;
  if (gathered != nullptr && gathered->contains(held)) return change_of_gathered(held);
  return change_of(outside, held, outside_check);
}

const char* Record::change_of_gathered(const at::Tensor& held) const {
  return gathered->is_back(held) ? nullptr
                                 : "still missing, according to its gathered_by() callback,";
}

// Ignores hashes after a side write, because backward reads the written content even without
// checkpointing.
const char* Record::change_since_saved(std::int32_t value) const {
  const OutsideTensor& outside = outside_tensors[*values[value].outside];
  const at::Tensor& held = values[outside.value].kept;
  if (gathered != nullptr && gathered->contains(held)) return change_of_gathered(held);
  return change_of(outside, held, outside.side_written ? OutsideCheck::kVersions : outside_check);
}

const at::Tensor& Record::outside_of(std::int32_t value) const {
  return values[outside_tensors[*values[value].outside].value].kept;
}

void Recorder::open(Record* record, const std::string* region) {
  record_ = record;
  region_ = region;
  context_index_ = std::nullopt;
  outer_ = exchange_open_recorder(this);
}

void Recorder::close() {
  settle_writes();
  settle_factories();
  record_ = nullptr;
  values_.clear();
  storages_.clear();
  tensor_identities_.clear();
  storage_identities_.clear();
  linked_parts_.clear();
  suspected_.clear();
  exposed_.clear();
  detached_.clear();
  held_writes_.clear();
  has_aliases_ = false;
  exchange_open_recorder(outer_);
}

void Recorder::run(const OpFacts& facts, c10::DispatchKeySet keys, torch::jit::Stack* stack,
                   std::size_t depth, Keep keep) {
  if (!unsettled_.empty()) settle_writes();
  if (!unkept_.empty()) settle_factories();
  Rollback rollback(*record_);
  note_arguments(facts, *stack);
  if (!suspected_.empty()) {
    rollback.undo();
    note_hidden_writes(&facts);
    rollback.restart();
    note_arguments(facts, *stack);
    suspected_.clear();
  }
  RecordedOp op{
      .facts = &facts,
      .keys = keys_below_interception(keys),
      .first_argument = rollback.first_argument(),
      .first_use = rollback.first_use(),
      .first_output = static_cast<std::uint32_t>(record_->outputs.size()),
      .num_uses = static_cast<std::uint32_t>(record_->uses.size()) - rollback.first_use(),
      .num_outputs = 0,
      .context = note_context(),
      .generator_state = std::nullopt,
      .stream = may_have_stream(facts, keys) ? note_stream(stream_of(facts, *stack)) : std::nullopt,
      .side_effect = false,
      .in_place = false,
      .side_writes = false,
      .held_writes = false,
      .takes_parts = false};
  if (facts.has_effects || checks_hashes()) {
    run_with_effects(op, keys, stack, depth, keep);
  } else {
    call_next(facts.op, keys, stack, depth);
    note_outputs(op, *stack, facts.returns_alias ? Keep::kNothing : keep);
  }
  if (record_->differences != nullptr) {
    record_->result_hashes.resize(record_->ops.size());
    record_->result_hashes.push_back(hash_of_results(facts, *stack));
  }
  record_->ops.push_back(op);
  rollback.commit();
  if (op.held_writes) hold_writes();
  if (op.side_effect && !linked_parts_.empty()) restore_outside_parts(op);
  forget_some_dead();
}

// Runs an op that may write, draw random numbers or communicate. Other ops skip this function,
// because it is slower. With OutsideCheck::kHashes, all ops run here.
void Recorder::run_with_effects(RecordedOp& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
                                std::size_t depth, Keep keep) {
  const OpFacts& facts = *op.facts;
  op.side_writes = has_side_writes(facts, *stack);
  const bool writes = facts.mutates || op.side_writes;
  if (writes) classify_writes(op, *stack);
  op.side_effect |= facts.unrepeatable && !op.in_place;
  if (!facts.side_written.empty() && !op.side_writes) copy_side_arguments(op, *stack);
  VersionCounters counters;
  if (writes) {
    counters = counters_of_written(op, *stack);
    copy_what_is_overwritten(op);
    for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
      if (is_written(op, record_->uses[i])) copy_constants_before_write(op, record_->uses[i]);
    }
    if (!linked_parts_.empty()) copy_before_part_writes(op);
  }
  if (facts.collective == CollectivePart::kStartWithHandle) note_transfer(facts, *stack);
  std::optional<GeneratorState> generator_state;
  if (facts.may_draw) generator_state = state_before(facts, *stack);
  const HashedArguments hashed = checks_hashes() ? hash_unwritten(op, *stack) : HashedArguments{};

  call_next(facts.op, keys, stack, depth);

  check_unwritten(op, hashed);
  if (generator_state.has_value()) {
    op.generator_state = static_cast<std::int32_t>(record_->generator_states.size());
    record_->generator_states.push_back(std::move(*generator_state));
  }
  if (writes) note_writes(op, counters);
  if (op.side_effect) {
    keep = Keep::kForever;
  } else if (op.in_place || facts.returns_alias) {
    keep = Keep::kNothing;
  }
  if (facts.collective == CollectivePart::kWait) {
    note_wait(op, *stack);
  } else {
    note_outputs(op, *stack, keep);
  }
  if (facts.collective == CollectivePart::kStart) note_start(op);
}

std::int32_t Recorder::note_context() {
  if (context_index_.has_value() && context_.is_current()) return *context_index_;
  context_ = KernelContext::current();
  std::vector<KernelContext>& known = record_->contexts;
  const auto found = std::find(known.begin(), known.end(), context_);
  context_index_ = static_cast<std::int32_t>(found - known.begin());
  if (found == known.end()) known.push_back(context_);
  return *context_index_;
}

BasicOptionalIndex<std::int16_t> Recorder::note_stream(const std::optional<c10::Stream>& stream) {
  if (!stream.has_value()) return std::nullopt;
  std::vector<c10::Stream>& known = record_->streams;
  const auto found = std::find(known.begin(), known.end(), *stream);
  const auto index = static_cast<std::int16_t>(found - known.begin());
  if (found == known.end()) known.push_back(*stream);
  return index;
}

void Recorder::note_arguments(const OpFacts& facts, const torch::jit::Stack& stack) {
  using Kind = OpFacts::ArgumentKind;
  const std::size_t base = stack.size() - facts.arguments.size();
  for (std::size_t position = 0; position < facts.arguments.size(); ++position) {
    const c10::IValue& argument = stack[base + position];
    if (facts.arguments[position] == Kind::kTensor && argument.isTensor() &&
        argument.toTensor().defined()) {
      note_use(argument.toTensor(), position, std::nullopt);
      record_->arguments.emplace_back();
    } else if (facts.arguments[position] == Kind::kTensorList && argument.isTensorList()) {
      const auto list = argument.toTensorList();
      for (std::size_t item = 0; item < list.size(); ++item) {
        note_use(list.get(item), position, static_cast<std::int32_t>(item));
      }
      record_->arguments.emplace_back(static_cast<std::int64_t>(list.size()));
    } else if (facts.arguments[position] == Kind::kOptionalTensorList && argument.isList()) {
      const auto list = argument.toOptionalTensorList();
      for (std::size_t item = 0; item < list.size(); ++item) {
        const std::optional<at::Tensor> tensor = list.get(item);
        if (tensor.has_value()) note_use(*tensor, position, static_cast<std::int32_t>(item));
      }
      record_->arguments.emplace_back(static_cast<std::int64_t>(list.size()));
    } else {
      record_->arguments.push_back(argument);
    }
  }
}

// Compares only version counters, which is cheap enough for every use of a tensor. is_explained()
// does the expensive check.
inline void Recorder::suspect(std::int32_t value, const at::Tensor& tensor) {
  const RecordedValue& known = record_->values[value];
  const RecordedStorage& storage = record_->storages[known.storage];
  if (storage.outside || !known.op.has_value()) return;
  const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
  const bool has_moved =
      counter.enabled() && counter.current_version() - storage.explained != known.version_offset;
  if (!has_moved && !storage.exposed) return;
  suspected_.push_back({value, tensor});
}

void Recorder::note_use(const at::Tensor& tensor, std::size_t argument, OptionalIndex item) {
  if (!tensor.defined()) return;
  const std::int32_t value = value_of(tensor);
  suspect(value, tensor);
  const std::int32_t version = record_->storages[record_->values[value].storage].version;
  record_->uses.push_back({value, version, static_cast<std::uint16_t>(argument), item});
  if (version == 0) keep_if_filled_by_pointer(value, tensor);
}

std::int32_t Recorder::saved_value_of(const at::Tensor& tensor) {
  const std::int32_t value = value_of(tensor);
  const RecordedValue& known = record_->values[value];
  if (!known.op.has_value() && !known.kept.defined()) hold_outside(value, tensor);
  record_->values[value].saved = true;
  suspect(value, tensor);
  if (!suspected_.empty()) note_hidden_writes(/*next=*/nullptr);
  if (record_->storages[known.storage].version == 0) {
    keep_if_filled_by_pointer(value, tensor);
  }
  return value;
}

// If an `empty` tensor is read or saved before any op wrote to it, something has filled it through
// a raw pointer. Examples are an extension's kernel and at::tensor({...}). Replay cannot compute
// the content, so the tensor is kept as a constant.
void Recorder::keep_if_filled_by_pointer(std::int32_t unwritten, const at::Tensor& tensor) {
  RecordedValue& value = record_->values[unwritten];
  if (!value.from_empty || value.constant) return;
  if (!value.kept.defined()) {
    value.kept = without_graph(tensor);
    value.kept_version = version_of(tensor);
  }
  value.constant = true;
}

void Recorder::note_outputs(RecordedOp& op, const torch::jit::Stack& stack, Keep keep) {
  const std::size_t num_returns = op.facts->num_returns;
  for (std::size_t i = stack.size() - num_returns; i < stack.size(); ++i) {
    const c10::IValue& result = stack[i];
    if (result.isTensor()) {
      note_output(op, result.toTensor(), keep);
    } else if (result.isTensorList()) {
      const auto list = result.toTensorList();
      for (std::size_t item = 0; item < list.size(); ++item) note_output(op, list.get(item), keep);
    }
  }
}

void Recorder::note_output(RecordedOp& op, const at::Tensor& tensor, Keep keep) {
  ++op.num_outputs;
  if (!tensor.defined()) {
    record_->outputs.emplace_back();
    return;
  }
  const OptionalIndex known = values_.find(tensor.unsafeGetTensorImpl());
  if (known.has_value()) {  // the op works in place, or returns its argument
    record_->outputs.push_back(known);
    if (op.in_place) follow_new_parts(*known, tensor);
    return;
  }
  const std::size_t storages_before = record_->storages.size();
  const std::size_t links_before = linked_parts_.size();
  const std::int32_t storage = storage_of(tensor, /*outside=*/false);
  const bool is_fresh = static_cast<std::size_t>(storage) == storages_before;
  for (std::size_t i = links_before; i < linked_parts_.size(); ++i) {
    op.takes_parts |= linked_parts_[i].outside.defined();
  }
  const auto value = static_cast<std::int32_t>(record_->values.size());
  record_->values.push_back(
      {.op = static_cast<std::int32_t>(record_->ops.size()),
       .storage = storage,
       .kept = {},
       .outside = is_fresh ? std::nullopt : outside_behind(op, storage),
       .version_offset = is_fresh ? counted_version(tensor) : offset_behind(op, storage),
       .from_empty = op.facts->is_empty_factory});
  if (keep != Keep::kNothing && is_fresh) {
    const bool is_factory = op.facts->device_argument >= 0;
    if (is_factory) {
      unkept_.push_back({value, keep, decltype(UnkeptResult::tensor)(tensor.getIntrusivePtr())});
    } else {
      keep_value(value, tensor, keep);
    }
  }
  values_.set(tensor.unsafeGetTensorImpl(), value);
  tensor_identities_.emplace_back(tensor.getIntrusivePtr());
  record_->outputs.emplace_back(value);
  if (!is_fresh && op.facts->is_detached) note_detached(value, tensor);
}

// A collective with a side effect is never recomputed, so replay need not wait for it.
void Recorder::note_start(const RecordedOp& op) {
  if (op.side_effect) return;
  for (std::size_t i = op.first_output; i < record_->outputs.size(); ++i) {
    const OptionalIndex value = record_->outputs[i];
    if (!value.has_value()) continue;
    record_->waits.push_back({static_cast<std::int32_t>(record_->ops.size()), *value, {}});
  }
}

// A wait takes one tensor and returns it. Until the wait completes, a backend may fill the tensor
// with ops that raise its version counter. So the versions of kept tensors are read again after the
// wait.
void Recorder::note_wait(RecordedOp& op, const torch::jit::Stack& stack) {
  TORCH_INTERNAL_ASSERT(op.num_uses == 1 && stack.back().isTensor(), "rematch: ", op.facts->name,
                        " takes and returns one tensor");
  op.num_outputs = 1;
  record_->outputs.emplace_back();  // a wait returns its argument, which is not a new value
  RecordedUse& use = record_->uses[op.first_use];
  const std::int32_t storage = record_->values[use.value].storage;
  bool is_first = true;
  for (RecordedWait& started : record_->waits) {
    if (started.wait.has_value() || record_->values[started.value].storage != storage) continue;
    started.wait = static_cast<std::int32_t>(record_->ops.size());
    // The wait also completes the other collectives started on this storage.
    if (std::exchange(is_first, false)) use.value = started.value;
  }
  for (RecordedValue& value : record_->values) {
    if (value.storage != storage) continue;
    value.has_any_version = true;
    if (!value.kept.defined()) continue;
    value.kept_version = version_of(value.kept);
    if (!value.op.has_value()) note_written(record_->outside_tensors[*value.outside], value);
  }
}

void Recorder::forget_some_dead() {
  forget_if_dead(tensor_identities_, next_tensor_, values_);
  forget_if_dead(storage_identities_, next_storage_, storages_);
}

}  // namespace rematch
