// The part of Recorder that finds writes through raw pointers, and keeps the written content. See
// Note [Hidden writes].
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/as_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "harness/engine/fault.h"
#include "harness/engine/interception.h"
#include "harness/engine/record/op_stream.h"
#include "harness/engine/record/record.h"
#include "harness/engine/record/storage_content.h"
#include "harness/engine/recording.h"
#include "harness/engine/replay/stand_in.h"
#include "harness/engine/stores/stash.h"

namespace rematch {
namespace {

void restore_content(const at::Tensor& written, const at::Tensor& content) {
  restore_bytes(*storage_address(written), content);
}

at::Tensor restore_view(const at::Tensor& base, at::IntArrayRef sizes, at::IntArrayRef strides,
                        std::int64_t storage_offset) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const UnseenGuard unseen;
  return at::as_strided(base, sizes, strides, storage_offset);
}

void restore_part(const at::Tensor& sparse, std::int64_t part, const at::Tensor& content) {
  const UnseenGuard unseen;
  parts_of(*sparse.unsafeGetTensorImpl()).at(static_cast<std::size_t>(part)).copy_(content);
}

struct ReplayOnlyOps {
  const OpFacts& restore_content;
  const OpFacts& restore_part;
  const OpFacts& restore_view;
};

// Registers the ops that only replay runs. Leaked, because threads may still replay while the
// process ends.
const ReplayOnlyOps& replay_only_ops() {
  static const ReplayOnlyOps ops = [&] {
    static auto* library =
        new torch::Library(torch::Library::FRAGMENT, "rematch", std::nullopt, __FILE__, __LINE__);
    constexpr auto kAnyBackend = c10::DispatchKey::CompositeExplicitAutograd;
    library->def("restore_content(Tensor(a!) written, Tensor content) -> ()");
    library->impl("restore_content", torch::dispatch(kAnyBackend, &restore_content));
    library->def("restore_part(Tensor(a!) sparse, int part, Tensor content) -> ()");
    library->impl("restore_part", torch::dispatch(kAnyBackend, &restore_part));
    library->def("restore_view(Tensor(a) base, int[] size, int[] stride, int offset) -> Tensor(a)");
    library->impl("restore_view", torch::dispatch(kAnyBackend, &restore_view));
    return ReplayOnlyOps{*find_facts("rematch::restore_content"),
                         *find_facts("rematch::restore_part"),
                         *find_facts("rematch::restore_view")};
  }();
  return ops;
}

// Ops of Python's torch.library.custom_op raise version counters before they run. Such ops have
// their own kernel for dispatch key ADInplaceOrView, where C++ ops use a fallback.
bool may_raise_versions_first(const OpFacts& facts) {
  return facts.mutates && !facts.name.starts_with("aten::") &&
         facts.op.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView);
}

}  // namespace

std::size_t Record::program_op(std::size_t index) const {
  for (const std::int32_t op : hidden_writes) {
    if (static_cast<std::size_t>(op) <= index) ++index;
  }
  return index;
}

std::size_t Record::program_index(std::int32_t op) const {
  const auto is_before = [op](std::int32_t each) { return each < op; };
  return static_cast<std::size_t>(
      op - std::count_if(hidden_writes.begin(), hidden_writes.end(), is_before));
}

bool Record::shares_kept(std::int32_t value) const {
  const RecordedValue& recorded = values[value];
  return recorded.kept.defined() &&
         storage_address(recorded.kept) == storages[recorded.storage].address;
}

// Checks the suspected tensors and appends an op for each hidden write. `next` is the op that is
// about to run, or null if autograd saves a tensor.
void Recorder::note_hidden_writes(const OpFacts* next) {
  const std::vector<SuspectedTensor> suspected = std::exchange(suspected_, {});
  for (const SuspectedTensor& each : suspected) {
    if (!is_explained(each.value, each.tensor, next)) append_hidden_write(each.value, each.tensor);
  }
}

bool Recorder::is_explained(std::int32_t id, const at::Tensor& tensor, const OpFacts* next) {
  RecordedValue& value = record_->values[id];
  RecordedStorage& storage = record_->storages[value.storage];
  const std::uint32_t offset = counted_version(tensor) - storage.explained;
  const bool is_collective_under_way =
      std::any_of(record_->waits.begin(), record_->waits.end(), [&](const RecordedWait& wait) {
        return !wait.wait.has_value() && record_->values[wait.value].storage == value.storage;
      });
  if (is_collective_under_way || value.has_any_version) {
    value.version_offset = offset;
    value.has_any_version = is_collective_under_way;
    return true;
  }
  const std::uint32_t pending = pending_bumps(value.storage);
  const auto ahead = static_cast<std::int32_t>(offset - value.version_offset - pending);
  const bool raised_by_next = next != nullptr && may_raise_versions_first(*next) &&
                              ahead <= static_cast<std::int32_t>(next->written.size());
  bool is_written = false;
  if (ahead > 0) {
    storage.explained += static_cast<std::uint32_t>(ahead);
    is_written = !raised_by_next;
  } else if (ahead < 0 && pending == 0) {
    value.version_offset = offset;  // the value has its own counter, which writes to other tensors
                                    // do not raise
  }
  const bool reads_content = next == nullptr || !next->returns_alias;
  if (storage.exposed && reads_content) {
    is_written |= has_exposed_content_changed(value.storage, *storage_address(tensor));
  }
  return !is_written || is_unwritten_constant(value.storage);
}

// Returns by how much the last op has raised the storage's version counter. Leaves out increments
// that settle_writes() has already counted.
std::uint32_t Recorder::pending_bumps(std::int32_t storage) const {
  std::uint32_t pending = 0;
  for (const UnsettledWrite& write : unsettled_) {
    pending += write.storage == storage && write.is_loud() ? 1 : 0;
  }
  return pending;
}

// Returns whether the storage was made by `empty` and no op has read its content. Hidden writes to
// such a storage need no extra op, because the record keeps the content at the first read.
bool Recorder::is_unwritten_constant(std::int32_t storage) {
  if (record_->storages[storage].version != 0 || is_content_read(storage)) return false;
  bool any = false;
  for (RecordedValue& value : record_->values) {
    if (value.storage != storage || !value.from_empty) continue;
    any = true;
    if (value.kept.defined()) value.kept_version = version_of(value.kept);
  }
  return any;
}

bool Recorder::is_content_read(std::int32_t storage) const {
  for (const RecordedOp& op : record_->ops) {
    const bool is_transfer = op.facts->collective == CollectivePart::kStartWithHandle;
    if (op.facts->returns_alias || op.facts->makes_alike || is_transfer) continue;
    for (std::size_t i = op.first_use; i < op.first_use + op.num_uses; ++i) {
      if (record_->values[record_->uses[i].value].storage == storage) return true;
    }
  }
  return false;
}

bool Recorder::has_exposed_content_changed(std::int32_t storage, c10::StorageImpl& impl) {
  const auto found =
      std::find_if(exposed_.begin(), exposed_.end(),
                   [storage](const ExposedStorage& each) { return each.storage == storage; });
  if (found == exposed_.end()) return false;
  if (found->use == PointerUse::kOnce) {
    exposed_.erase(found);
    record_->storages[storage].exposed = false;
    return true;
  }
  return !found->content.defined() || !has_bytes(impl, found->content);
}

void Recorder::append_hidden_write(std::int32_t id, const at::Tensor& tensor) {
  const std::int32_t written = record_->values[id].storage;
  const bool is_constant_lost =
      std::any_of(record_->values.begin(), record_->values.end(), [&](const RecordedValue& value) {
        return value.storage == written && value.constant &&
               record_->shares_kept(static_cast<std::int32_t>(&value - record_->values.data()));
      });
  if (is_replayed() && is_constant_lost && is_content_read(written)) {
    throw Refused(
        "region " + *region_ + ": " + describe_tensor(tensor) +
        ", which the region keeps because it was filled through a raw pointer, was written to "
        "again through a raw pointer after an op had read it; fill a new tensor");
  }
  at::Tensor content;
  for (ExposedStorage& each : exposed_) {
    if (each.storage != written) continue;
    content = copy_of_bytes(*storage_address(tensor));
    each.content = content;
  }
  if (is_replayed() && !content.defined()) content = copy_of_bytes(*storage_address(tensor));
  const RecordedOp op = op_not_run(replay_only_ops().restore_content, tensor);
  record_->arguments.emplace_back();
  record_->arguments.emplace_back(content);
  const std::int32_t index = append_own_write(op, id);
  RecordedStorage& storage = record_->storages[written];
  storage.last_loud_version = storage.version;
  if (!linked_parts_.empty()) note_linked_write(written, index, {written});
}

// Appends an op that writes a copy of `tensor` to a part of a sparse tensor.
void Recorder::append_part_write(std::int32_t value, std::int32_t part, const at::Tensor& tensor) {
  const RecordedOp op = op_not_run(replay_only_ops().restore_part, tensor);
  record_->arguments.emplace_back();
  record_->arguments.emplace_back(part);
  record_->arguments.emplace_back(is_replayed() ? content_of(tensor) : at::Tensor());
  append_own_write(op, value);
}

// Appends an op that writes to the value. The program did not run this op. The caller has already
// appended the op's arguments. Returns the op's index.
std::int32_t Recorder::append_own_write(RecordedOp op, std::int32_t value) {
  const std::int32_t written = record_->values[value].storage;
  RecordedStorage& storage = record_->storages[written];
  op.in_place = true;
  record_->uses.push_back({value, storage.version, 0, std::nullopt});
  const auto index = static_cast<std::int32_t>(record_->ops.size());
  record_->writes.push_back({index, written, ++storage.version});
  record_->hidden_writes.push_back(index);
  record_->ops.push_back(op);
  drop_kept_values(written);
  return index;
}

RecordedOp Recorder::op_not_run(const OpFacts& facts, const at::Tensor& tensor) {
  return {.facts = &facts,
          .keys = keys_below_interception(tensor.key_set().remove(c10::DispatchKey::Python)),
          .first_argument = static_cast<std::uint32_t>(record_->arguments.size()),
          .first_use = static_cast<std::uint32_t>(record_->uses.size()),
          .first_output = static_cast<std::uint32_t>(record_->outputs.size()),
          .num_uses = 1,
          .num_outputs = 0,
          .context = note_context(),
          .generator_state = std::nullopt,
          .stream = tensor.is_cuda() ? note_stream(current_stream(tensor.device())) : std::nullopt,
          .side_effect = false,
          .in_place = false,
          .side_writes = false,
          .held_writes = false,
          .takes_parts = false};
}

void Recorder::drop_kept_values(std::int32_t storage) {
  for (std::size_t i = 0; i < record_->values.size(); ++i) {
    RecordedValue& value = record_->values[i];
    if (value.storage != storage || !value.op.has_value()) continue;
    const auto id = static_cast<std::int32_t>(i);
    if (record_->stash != nullptr) record_->stash->drop(id);
    // A copied constant has its own storage, so it stays valid.
    if (value.constant && !record_->shares_kept(id)) continue;
    if (!has_fault(Fault::kStaleValue)) value.kept.reset();  // the kept content was overwritten
  }
}

void Recorder::copy_constants(std::int32_t storage) {
  for (std::size_t i = 0; i < record_->values.size(); ++i) {
    RecordedValue& value = record_->values[i];
    if (value.storage != storage || !value.constant) continue;
    if (!record_->shares_kept(static_cast<std::int32_t>(i))) continue;
    value.kept = on_copied_storage(value.kept);
    value.kept_version = version_of(value.kept);
    record_->constant_copies.push_back(
        {static_cast<std::int32_t>(record_->ops.size()), static_cast<std::int32_t>(i)});
  }
}

void Recorder::note_pointer_taken(const at::Tensor& tensor, PointerUse use) {
  if (!tensor.defined()) return;
  if (!unsettled_.empty()) settle_writes();
  const c10::StorageImpl* const address = storage_address(tensor);
  const OptionalIndex storage = address == nullptr ? std::nullopt : storages_.find(address);
  if (!storage.has_value() || record_->storages[*storage].outside) return;
  if (is_content_read(*storage)) copy_constants(*storage);
  record_->storages[*storage].exposed = true;
  const auto known =
      std::find_if(exposed_.begin(), exposed_.end(),
                   [&](const ExposedStorage& each) { return each.storage == *storage; });
  if (known == exposed_.end()) {
    exposed_.push_back({*storage, use, {}});
  } else if (use == PointerUse::kLasting) {
    known->use = use;
  }
}

// Call this before a write that is not recorded. If the storage comes from outside the region,
// raises its version and copies the content that ops have read. Recompute would otherwise read the
// new content.
void Recorder::note_write_ahead(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  note_pointer_taken(tensor, PointerUse::kOnce);
  const OptionalIndex storage = storages_.find(storage_address(tensor));
  if (!storage.has_value()) return;
  const auto next = static_cast<std::int32_t>(record_->ops.size());
  record_->writes_ahead.push_back({next, *storage});
  if (record_->storages[*storage].outside) {
    copy_what_was_read(*storage);
    ++record_->storages[*storage].version;
  }
}

// Notes the tensors that a collective writes after its op has returned a handle. Schemas do not
// mark these writes. The program reads the tensors only after it has waited for the collective.
void Recorder::note_transfer(const OpFacts& facts, const torch::jit::Stack& stack) {
  if (facts.name.starts_with("c10d::send")) return;
  const std::size_t base = stack.size() - facts.arguments.size();
  for (std::size_t position = 0; position < facts.arguments.size(); ++position) {
    if (facts.schema->arguments()[position].name().starts_with("input")) continue;
    for (const at::Tensor& tensor : tensors_in(stack[base + position])) note_write_ahead(tensor);
  }
}

Recorder::UnseenResults Recorder::unseen_results(const std::vector<at::Tensor>& results) const {
  UnseenResults unseen;
  std::vector<const void*> addresses;
  for (const at::Tensor& tensor : results) {
    if (!tensor.defined() || values_.find(tensor.unsafeGetTensorImpl()).has_value()) continue;
    const void* const address = storage_address(tensor);
    const OptionalIndex storage = address == nullptr ? std::nullopt : storages_.find(address);
    if (storage.has_value() && record_->storages[*storage].outside) continue;
    const bool is_first = std::find(addresses.begin(), addresses.end(), address) == addresses.end();
    const bool is_fresh = address == nullptr || (!storage.has_value() && is_first);
    const auto is_it = [&](const at::Tensor& each) { return each.is_same(tensor); };
    if (std::any_of(unseen.fresh.begin(), unseen.fresh.end(), is_it) ||
        std::any_of(unseen.views.begin(), unseen.views.end(), is_it)) {
      continue;
    }
    (is_fresh ? unseen.fresh : unseen.views).push_back(tensor);
    addresses.push_back(address);
  }
  return unseen;
}

void Recorder::append_view(const at::Tensor& base, const at::Tensor& view) {
  const std::int32_t viewed = value_of(base);
  const std::int32_t shared = record_->values[viewed].storage;
  const auto index = static_cast<std::int32_t>(record_->ops.size());
  RecordedOp op = op_not_run(replay_only_ops().restore_view, view);
  op.num_outputs = 1;
  record_->uses.push_back({viewed, record_->storages[shared].version, 0, std::nullopt});
  record_->arguments.emplace_back();
  record_->arguments.emplace_back(view.sizes().vec());
  record_->arguments.emplace_back(view.strides().vec());
  record_->arguments.emplace_back(view.storage_offset());
  const auto value = static_cast<std::int32_t>(record_->values.size());
  record_->values.push_back(
      {.op = index,
       .storage = shared,
       .kept = {},
       .outside = std::nullopt,
       .version_offset = counted_version(view) - record_->storages[shared].explained});
  values_.set(view.unsafeGetTensorImpl(), value);
  tensor_identities_.emplace_back(view.getIntrusivePtr());
  record_->outputs.emplace_back(value);
  record_->hidden_writes.push_back(index);
  record_->ops.push_back(op);
}

namespace {

thread_local Recorder* innermost_recorder = nullptr;

}  // namespace

Recorder* exchange_open_recorder(Recorder* recorder) {
  return std::exchange(innermost_recorder, recorder);
}

Recorder* open_recorder() { return innermost_recorder; }

bool is_in_kernel() {
  return c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::Fake);
}

void note_pointer_taken(const at::Tensor& tensor, PointerUse use) {
  // Kernels of recorded ops also take pointers, but their writes are already recorded.
  if (innermost_recorder == nullptr || is_in_kernel()) return;
  innermost_recorder->note_pointer_taken(tensor, use);
}

}  // namespace rematch
