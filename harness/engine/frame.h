// A frame is one forward pass through a region. It owns the region's record, and one slot for each
// tensor that autograd saved in that pass. The frame lives until the last graph node has released
// its slot.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine/error_view.h"
#include "harness/engine/prepared_plan.h"
#include "harness/engine/program_hooks.h"
#include "harness/engine/record/record.h"
#include "harness/engine/replay/replay.h"
#include "harness/engine/stores/stash.h"

namespace rematch {

class Frame {
 public:
  // `region` is an index into Prepared::regions.
  Frame(std::shared_ptr<const Checkpoint::Prepared> prepared, std::size_t region, Verify verify);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::string& region_name() const { return region_name_; }
  std::size_t region_index() const { return region_index_; }
  const PlannedRegion& region() const { return *prepared_->regions[region_index_].planned; }
  const PreparedRegionType& type() const { return *type_; }
  Record& record() { return record_; }
  const Record& record() const { return record_; }

  // Switches to a region of another shape. The new region must begin at the same scope, and its
  // first ops must be the ops that have already run.
  void follow_region(std::size_t region);

  // See Note [Leaving the plan].
  void leave_plan() { has_left_plan_ = true; }
  bool has_left_plan() const { return has_left_plan_; }

  // Called at the end of the region's forward. If `fault` is not null, every later unpack()
  // rethrows it.
  void close(std::exception_ptr fault);

  // Copies the tensors on this storage that the region has read, because the program is about to
  // overwrite the tensors. Skips tensors that have already changed. The region must be closed. See
  // Note [Watching writes].
  void keep_content_of(const c10::StorageImpl* storage);

  // See Note [Saved-tensor hooks of the program]. Call this before close(), while the hooks still
  // exist.
  void pack_kept_values(const HookPair& pair) { packed_values_.pack(record_, pair); }

  // See Note [Lifetime of stored values]. `before` is the region that precedes this one in forward.
  void follow(std::weak_ptr<Frame> before) { before_ = std::move(before); }
  void leave_device();
  void come_back();

  // Called by the saved-tensor hook of a slot (SlotHook). pack() runs on the recording thread while
  // the region is open. unpack() and release() may run on any thread.
  int pack(Recorder& recorder, const at::Tensor& tensor);
  at::Tensor unpack(int slot);
  void release(int slot);

 private:
  using Slot = SavedSlot;

  ReplayExtent extent() const;
  void check_not_written_since(const Slot& slot) const;
  void check_outside(const Slot& slot) const;
  bool is_stale(const Slot& slot) const;
  bool may_be_copied(const RecordedUse& read) const;
  at::Tensor unpack_slot(int slot);
  at::Tensor unpack_alone(const Slot& slot);
  void put_inputs();
  void put_input(const RegionInput& input, Store store);
  void bring_back();
  void bring_back_values();
  void bring_back_value(StoredValue& stored);
  WantedValue as_backward_reads(const Slot& slot) const;
  std::int32_t early_stop() const;
  void begin_replay(int graph_task);
  void make_available(int slot);
  void materialize_planned(int slot);

  const std::shared_ptr<const Checkpoint::Prepared> prepared_;
  std::size_t region_index_;
  const PreparedRegionType* type_;
  std::string region_name_;
  std::mutex mutex_;
  std::unique_ptr<FrameBuffers> buffers_;
  Record& record_;
  Stash stash_;
  std::vector<Slot>& slots_;
  std::int32_t stop_ = 0;  // number of ops before the last pack; used by early stop
  bool open_ = true;
  bool has_left_plan_ = false;
  std::exception_ptr fault_;
  std::optional<Replay> replay_;
  int replay_task_ = 0;  // the autograd graph task that replay_ serves
  std::weak_ptr<Frame> before_;
  PackedValues packed_values_;
};

// Autograd holds a SlotHook in place of a saved tensor.
class SlotHook final : public torch::autograd::SavedVariableHooks {
 public:
  SlotHook(std::shared_ptr<Frame> frame, Recorder* recorder)
      : frame_(std::move(frame)), recorder_(recorder) {}
  ~SlotHook() override {
    if (slot_) frame_->release(*slot_);
  }
  void call_pack_hook(const at::Tensor& tensor) override {
    with_host_errors([&] { slot_ = frame_->pack(*recorder_, tensor); });
  }
  at::Tensor call_unpack_hook() override {
    return with_host_errors([&] { return frame_->unpack(*slot_); });
  }

 private:
  std::shared_ptr<Frame> frame_;
  Recorder* recorder_;  // used by pack() only, while the region is open
  std::optional<int> slot_;
};

}  // namespace rematch
