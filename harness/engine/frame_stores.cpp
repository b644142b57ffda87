// The part of Frame that moves values to stores and back. See Note [Lifetime of stored values]
// (policies/plan/treatment.h).
#include <algorithm>

#include "harness/engine/frame.h"
#include "harness/engine/interception.h"

namespace rematch {
namespace {

bool is_alone_on_storage(const Record& record, const RecordedValue& value) {
  return std::count_if(record.values.begin(), record.values.end(), [&](const RecordedValue& other) {
           return !other.op.has_value() && other.storage == value.storage;
         }) == 1;
}

}  // namespace

// Starts to copy the region's inputs to stores, as planned. Skips leaves, and inputs that the
// region reads through several tensors, because the program may hold these inputs.
void Frame::put_inputs() {
  for (const StoreTraits& store : kStores) {
    for (const RegionInput& input : type_->planned->stored_inputs[store.store]) {
      put_input(input, store.store);
    }
  }
}

void Frame::put_input(const RegionInput& input, Store store) {
  const std::size_t index = record_.program_op(static_cast<std::size_t>(input.op));
  if (index >= record_.ops.size()) return;
  const RecordedOp& op = record_.ops[index];
  if (static_cast<std::uint32_t>(input.argument) >= op.num_uses) return;
  const std::int32_t id =
      record_.uses[op.first_use + static_cast<std::size_t>(input.argument)].value;
  const RecordedValue& value = record_.values[id];
  const bool may_be_of_program = value.op.has_value() || value.kept.requires_grad();
  if (may_be_of_program || !is_alone_on_storage(record_, value)) return;
  stash_.put(id, value.kept, store);
}

void Frame::leave_device() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stash_.wait_until_put();
  for (const StoredValue& stored : stash_.values()) record_.values[stored.value()].kept.reset();
}

void Frame::come_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  bring_back_values();
}

// Called when backward needs the first value of this region. Next, backward needs the values of the
// preceding region, so this function also starts to fetch those.
void Frame::bring_back() {
  bring_back_values();
  stash_.wait_until_back();
  if (const auto before = std::exchange(before_, {}).lock()) before->come_back();
}

void Frame::bring_back_values() {
  stash_.take_back([this](StoredValue& stored) { bring_back_value(stored); });
}

// If the tensor was overwritten after its copy was made, the copy is not used. A result of the
// region is then recomputed. An input cannot be recomputed, so backward of the region fails.
void Frame::bring_back_value(StoredValue& stored) {
  RecordedValue& value = record_.values[stored.value()];
  if (value.kept.defined()) return;  // still on the device
  if (!stored.is_stale()) {
    value.kept = stored.restore();
    value.kept_version = version_of(value.kept);
    tell_brought_back(value.kept);
    if (!value.op.has_value()) {
      exchange_held(record_.outside_tensors[*value.outside], value.kept);
    }
  } else if (!value.op.has_value()) {
    fault_ = std::make_exception_ptr(
        Refused("region " + region_name_ + ": " + stored.describe() + ", an input that the plan " +
                traits_of(stored.store()).verb +
                ", was changed in place before backward; change it after backward, or write to a "
                "copy"));
  }
}

}  // namespace rematch
