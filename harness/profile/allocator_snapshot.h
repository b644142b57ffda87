// PyTorch's own record of its CUDA allocator, in the bytes that torch.cuda.memory._dump_snapshot
// writes and pytorch.org/memory_viz shows. A program that is linked without CUDA has none.
#pragma once

#include <string>
#include <vector>

#include "harness/profile/activity.h"

namespace rematch {

// Forgets earlier events and records each allocation and free from here on, the last of them if
// they are very many.
void record_allocations();

// The allocator's segments and the recorded events, pickled. Recording ends. Throws
// std::runtime_error without CUDA.
std::string take_allocator_snapshot();

// Notes this beside each event from here on: memory_viz shows it as `user_metadata`.
void name_allocations(const std::string& name);

// Names the events of each op after it: "recompute blocks.3 aten::mm".
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
  // Forward, backward and the optimizer take turns, so that one list serves their threads.
  std::vector<std::string> open_;
};

}  // namespace rematch
