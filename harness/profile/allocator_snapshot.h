// PyTorch's record of its CUDA allocator, in the format that torch.cuda.memory._dump_snapshot
// writes and pytorch.org/memory_viz shows. Not available in a program linked without CUDA.
#pragma once

#include <string>
#include <vector>

#include "harness/profile/activity.h"

namespace rematch {

// Drops earlier events and records each allocation and free from this call on. If there are very
// many events, keeps the latest.
void record_allocations();

// Returns the allocator's segments and the recorded events, pickled. Stops recording. Throws
// std::runtime_error without CUDA.
std::string take_allocator_snapshot();

// Attaches this name to each later event. memory_viz shows the name as `user_metadata`.
void name_allocations(const std::string& name);

// Gives the events of each op a name such as "recompute blocks.3 aten::mm".
class AllocationMarker final : public LaunchMarker {
 public:
  void begin(std::uint64_t, const std::string& name) override {
    open_.push_back(name);
    name_allocations(name);
  }
  void end() override {
    open_.pop_back();
    name_allocations(open_.empty() ? "" : open_.back());
  }

 private:
  // Forward, backward and the optimizer run one after another, so one list is enough for all their
  // threads.
  std::vector<std::string> open_;
};

}  // namespace rematch
