#include "harness/engine/frame.h"

#include <torch/csrc/autograd/engine.h>

#include <algorithm>

#include "harness/engine/interception.h"

namespace rematch {
namespace {

// Returns whether backward runs only a part of the graph, as torch::autograd::grad() does. Such a
// pass does not unpack every saved tensor, so recomputing all saved tensors at once would waste
// work.
bool is_partial_backward() {
  const auto* exec_info = torch::autograd::get_current_graph_task_exec_info();
  return exec_info != nullptr && !exec_info->empty();
}

std::string name_of(const PlannedRegion& region) {
  return region.first_scope == region.last_scope ? region.first_scope
                                                 : region.first_scope + ".." + region.last_scope;
}

}  // namespace

Frame::Frame(std::shared_ptr<const Checkpoint::Prepared> prepared, std::size_t region,
             Verify verify)
    : prepared_(std::move(prepared)),
      region_index_(region),
      type_(prepared_->regions[region].type),
      region_name_(name_of(*prepared_->regions[region].planned)),
      buffers_(prepared_->buffers.take()),
      record_(buffers_->record),
      stash_(prepared_->stores),
      slots_(buffers_->slots) {
  record_.outside_check = prepared_->options.outside_check;
  record_.gathered = &prepared_->gathered;
  record_.differences = verify == Verify::kNothing ? nullptr : &prepared_->differences;
  record_.stash = &stash_;
  stash_.set_open(!prepared_->regions[region].is_last);
  record_.ops.reserve(type_->ops.size());
  record_.arguments.reserve(4 * type_->ops.size());
  record_.uses.reserve(2 * type_->ops.size());
  record_.outputs.reserve(type_->ops.size() + 8);
  record_.values.reserve(2 * type_->ops.size());
  record_.storages.reserve(2 * type_->ops.size());
}

Frame::~Frame() {
  stash_.wait_until_put();
  stash_.wait_until_back();
  replay_.reset();
  prepared_->buffers.give_back(std::move(buffers_));
}

void Frame::follow_region(std::size_t region) {
  std::lock_guard<std::mutex> lock(mutex_);
  const PreparedRegion& followed = prepared_->regions[region];
  region_index_ = region;
  type_ = followed.type;
  region_name_ = name_of(*followed.planned);
  stash_.set_open(!followed.is_last || !stash_.empty());
}

void Frame::close(std::exception_ptr fault) {
  std::lock_guard<std::mutex> lock(mutex_);
  open_ = false;
  fault_ = std::move(fault);
  if (!prepared_->moves_values) return;
  try {
    if (fault_ == nullptr && !has_left_plan_ && !slots_.empty()) put_inputs();
  } catch (...) {
    fault_ = std::current_exception();
  }
  if (!stash_.empty()) stash_.close();
}

void Frame::keep_content_of(const c10::StorageImpl* storage) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_ || fault_ != nullptr) return;
  for (std::size_t id = 0; id < record_.storages.size(); ++id) {
    const RecordedStorage& known = record_.storages[id];
    if (!known.outside || known.address != storage) continue;
    for (const RecordedUse& read : reads_of(record_, static_cast<std::int32_t>(id))) {
      if (may_be_copied(read)) copy_outside(record_, region_name_, read);
    }
  }
}

// A copy is wrong if the tensor's content has already changed. A gathered parameter needs no copy,
// because its content is restored before recompute.
bool Frame::may_be_copied(const RecordedUse& read) const {
  if (!record_.values[read.value].outside.has_value()) return false;
  const at::Tensor& outside = record_.outside_of(read.value);
  const bool is_gathered = record_.gathered != nullptr && record_.gathered->contains(outside);
  return !is_gathered && outside.defined() && record_.change_since_read(read.value) == nullptr;
}

int Frame::pack(Recorder& recorder, const at::Tensor& tensor) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::int32_t value = recorder.saved_value_of(tensor);
  const std::int32_t version = record_.storages[record_.values[value].storage].version;
  stop_ = static_cast<std::int32_t>(record_.ops.size());
  slots_.push_back({.wanted = {value, version}, .version = SavedVersion(tensor)});
  return static_cast<int>(slots_.size()) - 1;
}

at::Tensor Frame::unpack(int slot_index) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (prepared_->moves_values) bring_back();
  packed_values_.unpack(record_);
  at::Tensor tensor = unpack_slot(slot_index);
  if (!packed_values_.makes_contiguous() || tensor.is_contiguous()) return tensor;
  const UnseenGuard unseen;
  return tensor.contiguous();
}

at::Tensor Frame::unpack_slot(int slot_index) {
  if (fault_ != nullptr) std::rethrow_exception(fault_);
  Slot& slot = slots_[slot_index];
  check_not_written_since(slot);
  const RecordedValue& value = record_.values[slot.wanted.value];
  if (value.outside.has_value()) check_outside(slot);
  if (!value.op.has_value()) return value.kept;
  const int graph_task = torch::autograd::get_current_graph_task_id();
  if (open_ || graph_task < 0) return unpack_alone(slot);
  if (!replay_.has_value() || graph_task != replay_task_ || !slot.planned) begin_replay(graph_task);
  make_available(slot_index);
  slot.planned = false;
  return replay_->take(slot.wanted.value);
}

// Throws for a saved tensor that was modified later, as autograd does.
void Frame::check_not_written_since(const Slot& slot) const {
  TORCH_CHECK(!is_stale(slot), "rematch: region ", region_name_,
              ": a tensor needed for gradient computation was modified by an in-place op after it "
              "was saved. Use the out-of-place op");
}

// For a tensor from outside the region, checks only writes inside the region. check_outside()
// checks later writes.
bool Frame::is_stale(const Slot& slot) const {
  const RecordedStorage& storage = record_.storages[record_.values[slot.wanted.value].storage];
  if (!storage.outside) return slot.version.is_stale();
  return version_for_backward(storage, slot.wanted.version) != storage.version;
}

// `slot` must hold a tensor from outside the region, or a view of one.
void Frame::check_outside(const Slot& slot) const {
  const char* change = record_.change_since_saved(slot.wanted.value);
  if (change == nullptr) return;
  throw Refused(
      "region " + region_name_ + ": " + describe_tensor(record_.outside_of(slot.wanted.value)) +
      ", which autograd saved in forward, was " + change +
      " before backward; change parameters and inputs after backward, or use gathered_by() for "
      "tensors whose content is restored");
}

// Recomputes one saved tensor. Used if backward runs inside forward, or if the program reads the
// tensor outside backward. Keeps no state for later calls.
at::Tensor Frame::unpack_alone(const Slot& slot) {
  ReplayBuffers buffers;  // an unfinished backward pass may still use buffers_
  const std::vector<WantedValue> wanted = {as_backward_reads(slot)};
  Replay replay(record_, region_name_, wanted, Replay::Extent::kClosure, 0, {},
                Replay::KeptValues::kBorrow, buffers);
  replay.run_all();
  return replay.take(slot.wanted.value);
}

// kPrefix replays the planned ops. If the pass left the plan, returns kWholeClosure instead, which
// recomputes whatever backward needs.
ReplayExtent Frame::extent() const {
  const bool as_forward = type_->extent == ReplayExtent::kPrefix;
  return has_left_plan_ && as_forward ? ReplayExtent::kWholeClosure : type_->extent;
}

void Frame::begin_replay(int graph_task) {
  std::vector<WantedValue>& wanted = buffers_->wanted;
  wanted.clear();
  for (Slot& slot : slots_) {
    const RecordedValue& value = record_.values[slot.wanted.value];
    slot.wanted = as_backward_reads(slot);
    slot.planned = slot.alive && value.op.has_value() && !is_stale(slot);
    if (slot.planned) wanted.push_back(slot.wanted);
  }
  const bool as_forward = extent() == ReplayExtent::kPrefix;
  const auto num_ops = static_cast<std::int32_t>(record_.ops.size());
  replay_.emplace(record_, region_name_, wanted,
                  as_forward ? Replay::Extent::kPrefix : Replay::Extent::kClosure,
                  type_->early_stop ? early_stop() : num_ops, type_->skipped,
                  Replay::KeptValues::kTake, buffers_->replay);
  replay_task_ = graph_task;
  const bool at_once = extent() == ReplayExtent::kWholeClosure && !is_partial_backward();
  if (as_forward || at_once) replay_->run_all();
}

// Returns the tensor's version that backward reads: the saved version if the version counter shows
// a later write, and the storage's last version otherwise.
WantedValue Frame::as_backward_reads(const Slot& slot) const {
  const std::int32_t last = record_.storages[record_.values[slot.wanted.value].storage].version;
  return {slot.wanted.value, is_stale(slot) ? slot.wanted.version : last};
}

std::int32_t Frame::early_stop() const {
  const auto each_write = [this](const auto& visit) {
    for (const RecordedWrite& write : record_.writes) visit(write.op, write.storage, write.version);
  };
  return stop_behind_writes(stop_, each_write, [this](std::int32_t storage, std::int32_t version) {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return record_.values[slot.wanted.value].storage == storage && slot.wanted.version >= version;
    });
  });
}

void Frame::make_available(int slot) {
  const auto step = type_->demand_steps.find(slot);
  const bool ordered = !has_left_plan_ && step != type_->demand_steps.end() &&
                       extent() == ReplayExtent::kLazyClosure && !is_partial_backward();
  materialize_in_order(slot, ordered ? step->second : nullptr,
                       [this](int each) { materialize_planned(each); });
}

void Frame::materialize_planned(int slot_index) {
  if (slot_index >= static_cast<int>(slots_.size())) return;
  const Slot& slot = slots_[slot_index];
  if (slot.planned) replay_->materialize(slot.wanted);
}

void Frame::release(int slot_index) {
  std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = slots_[slot_index];
  slot.alive = false;
  if (slot.planned && replay_.has_value()) replay_->release(slot.wanted.value);
  slot.planned = false;
}

}  // namespace rematch
