#include "harness/engine/record/buffers.h"

#include <utility>

namespace rematch {

void FrameBuffers::clear() {
  record.clear();
  slots.clear();
  wanted.clear();
  replay.tensors.clear();
  replay.tables.clear();
  replay.stack.clear();
}

std::unique_ptr<FrameBuffers> BufferPool::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) return std::make_unique<FrameBuffers>();
  std::unique_ptr<FrameBuffers> buffers = std::move(free_.back());
  free_.pop_back();
  return buffers;
}

void BufferPool::give_back(std::unique_ptr<FrameBuffers> buffers) {
  buffers->clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(buffers));
}

}  // namespace rematch
