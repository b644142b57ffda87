// The part of Recorder that identifies tensors and storages, distinguishes the region's own tensors
// from outside tensors, and keeps values.
#include <algorithm>
#include <optional>
#include <utility>

#include "harness/engine/fault.h"
#include "harness/engine/record/record.h"
#include "harness/engine/record/wrapped_tensor.h"
#include "harness/engine/recording.h"
#include "harness/engine/stores/stash.h"

namespace rematch {
namespace {

// Returns the number that a tensor wraps, such as 1e-5 in `x + 1e-5`. Returns nothing for a complex
// number, which is held as a tensor.
std::optional<c10::Scalar> number_in(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!impl.is_wrapped_number() || !impl.is_cpu() || impl.numel() != 1 || !impl.has_storage() ||
      impl.key_set().has(c10::DispatchKey::Python) || tensor.requires_grad()) {
    return std::nullopt;
  }
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return c10::Scalar(*tensor.const_data_ptr<double>());
    case at::kLong:
      return c10::Scalar(*tensor.const_data_ptr<std::int64_t>());
    case at::kBool:
      return c10::Scalar(*tensor.const_data_ptr<bool>());
    default:
      return std::nullopt;
  }
}

c10::weak_intrusive_ptr<c10::StorageImpl> weak_storage(c10::StorageImpl* storage) {
  return c10::weak_intrusive_ptr<c10::StorageImpl>(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage));
}

}  // namespace

// Returns the outside tensor that an op's result is a view of.
OptionalIndex Recorder::outside_behind(const RecordedOp& op, std::int32_t storage) const {
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedValue& argument = record_->values[record_->uses[i].value];
    if (argument.storage == storage && argument.outside.has_value()) return argument.outside;
  }
  if (!record_->storages[storage].outside) return std::nullopt;
  const auto& all = record_->outside_tensors;
  const auto found = std::find_if(all.begin(), all.end(), [&](const OutsideTensor& outside) {
    return record_->values[outside.value].storage == storage;
  });
  return static_cast<std::int32_t>(found - all.begin());
}

// Returns the version offset of a view: the offset of its base, because both share a version
// counter.
std::uint32_t Recorder::offset_behind(const RecordedOp& op, std::int32_t storage) const {
  for (std::size_t i = op.first_use; i < record_->uses.size(); ++i) {
    const RecordedValue& argument = record_->values[record_->uses[i].value];
    if (argument.storage == storage) return argument.version_offset;
  }
  return 0;
}

void Recorder::note_detached(std::int32_t value, const at::Tensor& tensor) {
  if (record_->storages[record_->values[value].storage].outside) return;
  DetachedValue detached{.value = value,
                         .dtype = tensor.scalar_type(),
                         .layout = tensor.layout(),
                         .storage_offset = 0,
                         .sizes = tensor.sizes().vec(),
                         .strides = {}};
  if (tensor.layout() == at::kStrided && tensor.has_storage()) {
    detached.storage_offset = tensor.storage_offset();
    detached.strides = tensor.strides().vec();
  }
  detached_.push_back(std::move(detached));
}

// Autograd copies the result of a detach. If `tensor` is such a copy, returns the value of that
// result. Returns nothing for any other tensor.
OptionalIndex Recorder::detached_value(const at::Tensor& tensor) {
  const bool is_strided = tensor.layout() == at::kStrided;
  if (tensor.requires_grad() || (is_strided && !tensor.has_storage())) return std::nullopt;
  const auto found =
      std::find_if(detached_.rbegin(), detached_.rend(), [&](const DetachedValue& each) {
        const RecordedValue& value = record_->values[each.value];
        return each.layout == tensor.layout() && each.dtype == tensor.scalar_type() &&
               tensor.sizes() == each.sizes && is_on(tensor, value.storage) &&
               (!is_strided || (each.storage_offset == tensor.storage_offset() &&
                                tensor.strides() == each.strides)) &&
               counted_version(tensor) - record_->storages[value.storage].explained >=
                   value.version_offset;
      });
  if (found == detached_.rend()) return std::nullopt;
  const std::int32_t value = found->value;
  detached_.erase(std::next(found).base());
  values_.set(tensor.unsafeGetTensorImpl(), value);
  tensor_identities_.emplace_back(tensor.getIntrusivePtr());
  return value;
}

std::int32_t Recorder::value_of(const at::Tensor& tensor) {
  const OptionalIndex known = values_.find(tensor.unsafeGetTensorImpl());
  if (!known.has_value()) {
    const OptionalIndex detached = detached_.empty() ? std::nullopt : detached_value(tensor);
    return detached.has_value() ? *detached : add_outside(tensor);
  }
  const RecordedValue& value = record_->values[*known];
  const void* const address = storage_address(tensor);
  if (record_->storages[value.storage].address == address) return *known;
  if (address != nullptr && is_on(tensor, value.storage)) return *known;
  // The program has replaced the tensor's data. From now on, the tensor counts as a new outside
  // value. If the tensor came from outside, earlier reads of it become stale. If it is a result,
  // earlier reads use the old value.
  if (!value.op.has_value() || !value.saved) return add_outside(tensor);
  throw Refused("region " + *region_ + ": " + describe_tensor(tensor) + ", a result of " +
                record_->ops[*value.op].facts->name +
                ", was given different data (set_data, x.data = y, set_) after autograd saved the "
                "tensor. A recompute cannot repeat this change; use copy_, or a separate tensor");
}

// Parameters, gathered tensors and wrapped numbers are held directly. All other tensors are held
// detached. Otherwise the region and a tensor's graph, which may be made later, would keep each
// other alive. An outside tensor on one of the region's own storages is held detached too, so that
// reference counts can distinguish the record from the program.
std::int32_t Recorder::add_outside(const at::Tensor& tensor) {
  const auto value = static_cast<std::int32_t>(record_->values.size());
  record_->values.push_back({.op = std::nullopt, .storage = storage_of(tensor, /*outside=*/true)});
  has_aliases_ |= !record_->storages[record_->values.back().storage].outside;
  if (const std::optional<c10::Scalar> number = number_in(tensor)) {
    record_->numbers.push_back({value, *number});
    values_.set(tensor.unsafeGetTensorImpl(), value);
    tensor_identities_.emplace_back(tensor.getIntrusivePtr());
  } else {
    hold_outside(value, tensor);
  }
  return value;
}

void Recorder::hold_outside(std::int32_t value, const at::Tensor& tensor) {
  const std::int32_t storage = record_->values[value].storage;
  const bool is_parameter = tensor.requires_grad() && tensor.is_leaf() && !tensor.is_view();
  const bool is_gathered = record_->gathered != nullptr && record_->gathered->contains(tensor);
  const bool is_plain =
      record_->storages[storage].outside &&
      (is_parameter || is_gathered || tensor.unsafeGetTensorImpl()->is_wrapped_number());
  const at::Tensor held = is_plain ? tensor : held_input(without_graph(tensor));
  const auto outside = static_cast<std::int32_t>(record_->outside_tensors.size());
  record_->outside_tensors.push_back(outside_tensor(tensor, held));
  record_->outside_tensors.back().value = value;
  if (checks_hashes()) record_->outside_tensors.back().hash = hash_of(held);
  record_->values[value].kept = held;
  record_->values[value].outside = outside;
  values_.set(tensor.unsafeGetTensorImpl(), value);
  if (!is_plain) tensor_identities_.emplace_back(tensor.getIntrusivePtr());
}

void Recorder::keep_value(std::int32_t value, const at::Tensor& tensor, Keep keep) {
  RecordedValue& recorded = record_->values[value];
  recorded.kept = without_graph(tensor);
  recorded.constant |= keep == Keep::kForever;
  recorded.kept_version = version_of(tensor);
  put_in_store(value, keep.store);
}

void Recorder::put_in_store(std::int32_t value, Store store) {
  if (store == Store::kDevice || record_->stash == nullptr) return;
  record_->stash->put(value, record_->values[value].kept, store);
}

void Recorder::change_keep(const std::vector<Keep>& keep) {
  settle_writes();
  settle_factories();
  for (std::size_t index = 0; index < keep.size(); ++index) {
    const std::size_t id = record_->program_op(index);
    const RecordedOp& op = record_->ops[id];
    for (std::size_t i = op.first_output; i < op.first_output + op.num_outputs; ++i) {
      const OptionalIndex value = record_->outputs[i];
      if (!value.has_value() || record_->values[*value].op != static_cast<std::int32_t>(id)) {
        continue;
      }
      change_keep_of(*value, keep[index]);
    }
  }
}

// Constants are kept regardless of the plan.
void Recorder::change_keep_of(std::int32_t value, Keep keep) {
  RecordedValue& recorded = record_->values[value];
  if (!recorded.kept.defined() || recorded.constant) return;
  if (record_->stash != nullptr && record_->stash->store_of(value) != keep.store) {
    record_->stash->drop(value);
    put_in_store(value, keep.store);
  }
  if (keep == Keep::kNothing) recorded.kept.reset();
}

// If the program dropped the result, the tensor is freed and no op can read it.
void Recorder::settle_factories() {
  for (const UnkeptResult& result : unkept_) {
    const auto tensor = result.tensor.lock();
    if (tensor.defined()) keep_value(result.value, at::Tensor(tensor), result.keep);
  }
  unkept_.clear();
}

std::int32_t Recorder::storage_of(const at::Tensor& tensor, bool outside) {
  c10::StorageImpl* const address = storage_address(tensor);
  if (!tensor.has_storage() && address != nullptr) {
    const std::vector<at::Tensor> parts = parts_of(impl_with_data(tensor));
    if (!parts.empty()) return storage_of_sparse(tensor, parts, outside);
  }
  if (address != nullptr) {
    const OptionalIndex known = storages_.find(address);
    if (known.has_value()) return *known;
  }
  return new_storage(address, outside);
}

std::int32_t Recorder::new_storage(c10::StorageImpl* address, bool outside) {
  const auto storage = static_cast<std::int32_t>(record_->storages.size());
  record_->storages.push_back({.outside = outside, .address = address});
  if (address != nullptr) add_address(address, storage);
  return storage;
}

void Recorder::add_address(c10::StorageImpl* address, std::int32_t storage) {
  storages_.set(address, storage);
  storage_identities_.push_back(weak_storage(address));
}

OptionalIndex Recorder::known_storage(const at::Tensor& tensor) const {
  const c10::StorageImpl* const address = storage_address(tensor);
  return address == nullptr ? std::nullopt : storages_.find(address);
}

// Returns whether the tensor, or one of its parts, is on the storage.
bool Recorder::is_on(const at::Tensor& tensor, std::int32_t storage) const {
  if (known_storage(tensor) == storage) return true;
  if (tensor.has_storage()) return false;
  const std::vector<at::Tensor> parts = parts_of(impl_with_data(tensor));
  return std::any_of(parts.begin(), parts.end(),
                     [&](const at::Tensor& part) { return known_storage(part) == storage; });
}

}  // namespace rematch
