// The part of Frame that handles values on the host. See Note [Lifetime of offloaded values]
// (policies/plan/plan.h).
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

// Skips leaves, and inputs that the region reads through several tensors, because the program may
// own them.
void Frame::offload_inputs() {
  for (const RegionInput& input : type_->offload_inputs) {
    const std::size_t index = record_.program_op(static_cast<std::size_t>(input.op));
    if (index >= record_.ops.size()) continue;
    const RecordedOp& op = record_.ops[index];
    if (static_cast<std::uint32_t>(input.argument) >= op.num_uses) continue;
    const std::int32_t id =
        record_.uses[op.first_use + static_cast<std::size_t>(input.argument)].value;
    const RecordedValue& value = record_.values[id];
    if (value.op.has_value() || value.kept.requires_grad() ||
        !is_alone_on_storage(record_, value)) {
      continue;
    }
    record_.copy_to_host(id);
  }
}

void Frame::leave_device() {
  const std::lock_guard<std::mutex> lock(mutex_);
  HostStore::wait(copies_out_);
  for (const HostCopy& copy : record_.host_copies) record_.values[copy.value()].kept.reset();
}

void Frame::come_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  bring_back_values();
}

// Backward now demands a value of this region. Next, backward will demand values of the previous
// region.
void Frame::bring_back() {
  bring_back_values();
  HostStore::wait(copies_back_);
  if (const auto before = std::exchange(before_, {}).lock()) before->come_back();
}

void Frame::bring_back_values() {
  if (record_.host_copies.empty()) return;
  HostStore::wait(copies_out_);
  for (HostCopy& copy : record_.host_copies) bring_back_value(copy);
  record_.host_copies.clear();
  copies_back_ = record_.host->mark();
}

// A value that was written to after its copy is recomputed, like any kept value. An input cannot be
// recomputed, so the region gets a fault.
void Frame::bring_back_value(HostCopy& copy) {
  RecordedValue& value = record_.values[copy.value()];
  if (value.kept.defined()) return;  // the value never left the device
  if (!copy.is_stale()) {
    value.kept = copy.restore();
    value.kept_version = version_of(value.kept);
    tell_brought_back(value.kept);
    if (!value.op.has_value()) {
      exchange_held(record_.outside_tensors[*value.outside], value.kept);
    }
  } else if (!value.op.has_value()) {
    fault_ = std::make_exception_ptr(
        Refused("region " + region_name_ + ": " + copy.describe() +
                ", an input that the plan offloads, was changed in place before backward; change "
                "it after backward, or write to a copy"));
  }
}

}  // namespace rematch
