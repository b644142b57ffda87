// The part of Recorder that orders writes to the parts of sparse tensors. See Note [Parts of sparse
// tensors].
#include <algorithm>
#include <utility>
#include <vector>

#include "harness/engine/record/record.h"
#include "harness/engine/record/wrapped_tensor.h"
#include "harness/engine/recording.h"

namespace rematch {
namespace {

// Ops on sparse tensors write to the values in place, and replace the indices. Only copy_ writes to
// indices in place.
bool writes_indices(const OpFacts& facts) { return facts.schema->name() == "aten::copy_"; }

bool is_without_storage(const at::Tensor& tensor) { return tensor.layout() != at::kStrided; }

}  // namespace

bool Record::makes_sparse_of_outside(const RecordedOp& op) const {
  if (op.facts->returns_alias || op.in_place || op.side_effect) return false;
  for (std::size_t i = op.first_output; i < op.first_output + op.num_outputs; ++i) {
    if (!outputs[i].has_value()) continue;
    const RecordedValue& made = values[*outputs[i]];
    if (made.op.has_value() && storages[made.storage].outside) return true;
  }
  return false;
}

// Chooses a storage for a sparse tensor that an op made. Prefers the storage of a part that was
// made in the region. Among several parts, prefers the values, because they use most of the bytes.
std::int32_t Recorder::storage_of_sparse(const at::Tensor& sparse,
                                         const std::vector<at::Tensor>& parts, bool outside) {
  const OptionalIndex of_values = known_storage(parts.front());
  OptionalIndex chosen = of_values;
  if (of_values.has_value() && record_->storages[*of_values].outside) {
    for (const at::Tensor& part : parts) {
      const OptionalIndex known = known_storage(part);
      const bool is_own = known.has_value() ? !record_->storages[*known].outside : !outside;
      if (is_own) {
        chosen =
            known.has_value() ? known : OptionalIndex(new_storage(storage_address(part), false));
        break;
      }
    }
  }
  const std::int32_t storage =
      chosen.has_value() ? *chosen : new_storage(storage_address(parts.front()), outside);
  link_parts(static_cast<std::int32_t>(record_->values.size()), storage, sparse, parts);
  return storage;
}

void Recorder::link_parts(std::int32_t value, std::int32_t storage, const at::Tensor& sparse,
                          const std::vector<at::Tensor>& parts) {
  const bool is_own = !record_->storages[storage].outside;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    c10::StorageImpl* const address = storage_address(parts[i]);
    if (address == nullptr) continue;
    const OptionalIndex known = storages_.find(address);
    if (!known.has_value()) {
      add_address(address, storage);
    } else if (known != storage) {
      const bool is_from_outside = is_own && record_->storages[*known].outside;
      linked_parts_.push_back({value, static_cast<std::int32_t>(i), *known,
                               is_from_outside ? without_graph(parts[i]) : at::Tensor(),
                               decltype(LinkedPart::sparse)(sparse.getIntrusivePtr())});
    }
  }
}

// An in-place op may have replaced parts of a sparse tensor. Reads and writes of the old and the
// new values are ordered as if both were on one storage.
void Recorder::follow_new_parts(std::int32_t value, const at::Tensor& sparse) {
  if (!is_without_storage(sparse)) return;
  const std::vector<at::Tensor> parts = parts_of(impl_with_data(sparse));
  std::erase_if(linked_parts_, [&](const LinkedPart& each) { return each.value == value; });
  link_parts(value, record_->values[value].storage, sparse, parts);
}

// Returns the storages of linked parts (see Note [Parts of sparse tensors]) that the op writes
// through the sparse tensor.
std::vector<std::int32_t> Recorder::parts_written(const RecordedOp& op,
                                                  const RecordedUse& use) const {
  std::vector<std::int32_t> storages;
  for (const LinkedPart& each : linked_parts_) {
    const bool is_written = each.part == 0 || writes_indices(*op.facts);
    if (each.value == use.value && is_written) add_once(storages, each.storage);
  }
  return storages;
}

bool Recorder::writes_part_of_outside(const RecordedOp& op, const RecordedUse& use) const {
  const std::vector<std::int32_t> storages = parts_written(op, use);
  return std::any_of(storages.begin(), storages.end(),
                     [&](std::int32_t storage) { return record_->storages[storage].outside; });
}

Recorder::PartWrites Recorder::part_writes(const RecordedOp& op) const {
  PartWrites writes;
  for (std::size_t i = op.first_use; i < op.first_use + op.num_uses; ++i) {
    const RecordedUse& use = record_->uses[i];
    if (is_written(op, use)) add_once(writes.own, record_->values[use.value].storage);
  }
  writes.all = writes.own;
  for (std::size_t i = op.first_use; i < op.first_use + op.num_uses; ++i) {
    const RecordedUse& use = record_->uses[i];
    if (!is_written(op, use)) continue;
    for (const std::int32_t part : parts_written(op, use)) add_once(writes.all, part);
  }
  return writes;
}

// Copies parts that the op is about to overwrite, as copy_what_is_overwritten() and
// copy_constants_before_write() do for other tensors.
void Recorder::copy_before_part_writes(const RecordedOp& op) {
  const PartWrites writes = part_writes(op);
  for (const LinkedPart& each : linked_parts_) {
    const RecordedValue& sparse = record_->values[each.value];
    const bool is_unseen = !sparse.op.has_value() && !record_->storages[sparse.storage].outside;
    if (!is_unseen || !contains(writes.all, each.storage)) continue;
    throw Refused(
        "region " + *region_ + ": " + op.facts->name + " writes in place to a part of " +
        describe_tensor(sparse.kept) +
        ", a sparse tensor that no recorded op made; write to its indices or values before the "
        "sparse tensor is made");
  }
  std::vector<std::int32_t> others;
  for (const std::int32_t storage : writes.all) {
    if (!contains(writes.own, storage)) add_once(others, storage);
  }
  for (const LinkedPart& each : linked_parts_) {
    if (contains(writes.all, each.storage)) add_once(others, record_->values[each.value].storage);
  }
  for (const std::int32_t storage : others) {
    if (record_->storages[storage].outside || has_aliases_) copy_what_was_read(storage);
    copy_constants(storage);
  }
}

// Call this after the op has run and before it is appended to the record. A write to a sparse
// tensor also changes its linked parts, but does not raise their version counters. This function
// therefore raises only the versions in the record.
void Recorder::note_part_writes(const RecordedOp& op) {
  const PartWrites writes = part_writes(op);
  const auto index = static_cast<std::int32_t>(record_->ops.size());
  for (const std::int32_t storage : writes.all) {
    const bool is_own = !record_->storages[storage].outside;
    if (is_own && op.held_writes) continue;  // hold_writes() records this write
    if (!contains(writes.own, storage)) {
      ++record_->storages[storage].version;
      if (is_own) record_->writes.push_back({index, storage, record_->storages[storage].version});
      drop_kept_values(storage);
    }
    note_linked_write(storage, index, writes.own);
  }
}

// A write to storage `part` is also a write to each sparse tensor that has a part with this
// storage. Records these writes, except for the sparse tensors whose storages are in `counted`.
void Recorder::note_linked_write(std::int32_t part, std::int32_t op,
                                 std::vector<std::int32_t> counted) {
  for (const LinkedPart& each : linked_parts_) {
    const std::int32_t sparse = record_->values[each.value].storage;
    RecordedStorage& storage = record_->storages[sparse];
    const bool is_on_one_side = storage.outside == record_->storages[part].outside;
    if (each.storage != part || !is_on_one_side || contains(counted, sparse)) continue;
    counted.push_back(sparse);
    // Views of the parts share the sparse tensor's version counter, but the parts themselves do
    // not.
    const auto tensor = each.sparse.lock();
    const c10::VariableVersion counter =
        tensor.defined() ? tensor->version_counter() : c10::VariableVersion();
    unsettled_.push_back({sparse, ++storage.version, storage.last_loud_version, counter,
                          counter.enabled() ? counter.current_version() : 0});
    storage.last_loud_version = storage.version;
    if (!storage.outside) record_->writes.push_back({op, sparse, storage.version});
    drop_kept_values(sparse);
  }
}

// A held op has written to a sparse tensor: see Note [Held ops]. Appends ops that restore the
// tensor's parts, if the region made them. Returns whether the tensor is sparse.
bool Recorder::restore_own_parts(std::int32_t value, const at::Tensor& tensor) {
  if (!is_without_storage(tensor)) return false;
  const std::vector<at::Tensor> parts = parts_of(impl_with_data(tensor));
  const RecordedValue& sparse = record_->values[value];
  const bool is_made = sparse.op.has_value() && !sparse.outside.has_value();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const OptionalIndex storage = known_storage(parts[i]);
    if (!storage.has_value() || record_->storages[*storage].outside) continue;
    if (is_made) {
      append_part_write(value, static_cast<std::int32_t>(i), parts[i]);
    } else {
      append_hidden_write(value_made_on(*storage, value), parts[i]);
    }
  }
  return !parts.empty();
}

// The bytes of a sparse tensor are those of its parts. Linked parts are not counted, because they
// have other storages.
Bytes Recorder::storage_bytes(std::int32_t value, const at::Tensor& tensor) const {
  const c10::TensorImpl& impl = impl_with_data(tensor);
  if (impl.has_storage()) return {static_cast<std::int64_t>(impl.unsafe_storage().nbytes())};
  std::int64_t bytes = 0;
  const std::vector<at::Tensor> parts = parts_of(impl);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_linked =
        std::any_of(linked_parts_.begin(), linked_parts_.end(), [&](const LinkedPart& each) {
          return each.value == value && each.part == static_cast<std::int32_t>(i);
        });
    if (!is_linked) bytes += static_cast<std::int64_t>(parts[i].storage().nbytes());
  }
  return {bytes};
}

// Call this after appending an op that is never recomputed. If the op wrote to parts from outside
// the region, appends ops that restore these parts.
void Recorder::restore_outside_parts(const RecordedOp& op) {
  const std::vector<std::int32_t> written = part_writes(op).all;
  for (std::size_t i = 0; i < linked_parts_.size(); ++i) {
    const LinkedPart each = linked_parts_[i];
    const bool is_made = record_->values[each.value].op.has_value();
    if (!is_made || !each.outside.defined() || !contains(written, each.storage)) continue;
    append_part_write(each.value, each.part, each.outside);
  }
}

}  // namespace rematch
