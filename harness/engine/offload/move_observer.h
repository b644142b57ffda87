// Who is told of copies between a device and the host, and of streams that wait for them: what
// clocks hang on to. Without one nothing is told, and nothing costs.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>

namespace rematch {

enum class Move : std::uint8_t {
  kCopy,  // of one storage; on the CPU done when the call returns
  kJoin,  // work on the stream waits for copies on another one
};

class MoveObserver {
 public:
  virtual ~MoveObserver() = default;
  // Calls `start`, which gives the move to `stream`. Any thread.
  virtual void around(Move move, c10::Stream stream, const std::function<void()>& start) = 0;
};

}  // namespace rematch
