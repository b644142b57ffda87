// The vectors of a frame. Later frames reuse them, because growing new vectors in every region
// would cost more than filling them.
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
  bool planned = false;  // whether the current replay recomputes the value
};

// The state of one replay (replay.h).
struct ReplayBuffers {
  std::vector<at::Tensor> tensors;  // one for each value; undefined if the replay does not hold it
  ReplayTables tables;
  std::vector<c10::IValue> stack;
};

struct FrameBuffers {
  Record record;
  std::vector<SavedSlot> slots;
  std::vector<WantedValue> wanted;
  ReplayBuffers replay;

  // Clears all content and keeps the memory.
  void clear();
};

// Thread-safe, because frames may die on any thread.
class BufferPool {
 public:
  std::unique_ptr<FrameBuffers> take();
  void give_back(std::unique_ptr<FrameBuffers> buffers);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<FrameBuffers>> free_;
};

}  // namespace rematch
