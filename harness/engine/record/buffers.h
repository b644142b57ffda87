// The vectors of a frame. When a frame dies they are emptied and serve the next one: growing them
// anew in every region costs a dispatch-bound step more than filling them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/engine/record/record.h"
#include "harness/engine/record/saved_version.h"
#include "policies/replay/replay_planner.h"

namespace rematch {

// A tensor saved for backward: a value at a version.
using WantedValue = ReplayUse;

struct SavedSlot {
  WantedValue wanted;
  SavedVersion version;
  bool alive = true;
  bool planned = false;  // the current replay counts on it
};

// The state of one replay (replay.h).
struct ReplayBuffers {
  std::vector<at::Tensor> tensors;  // by value: what is there
  ReplayTables tables;
  std::vector<c10::IValue> stack;
};

struct FrameBuffers {
  Record record;
  std::vector<SavedSlot> slots;
  std::vector<WantedValue> wanted;
  ReplayBuffers replay;

  // Lets go of all content, not of the memory.
  void clear();
};

// Frames may die on any thread.
class BufferPool {
 public:
  std::unique_ptr<FrameBuffers> take();
  void give_back(std::unique_ptr<FrameBuffers> buffers);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<FrameBuffers>> free_;
};

}  // namespace rematch
