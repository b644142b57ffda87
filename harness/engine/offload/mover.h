// Host memory and copies between it and a device. One for each kind of device: on the CPU a second
// arena and memcpy, on meta tensors nothing is moved and host memory is an address that nobody
// reads, on CUDA (cuda_mover.cpp) pinned memory and a stream of its own. Counts nothing.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rematch {

// Who is told of copies between a device and the host, and of streams that wait for them: what
// clocks hang on to. Without one nothing is told, and nothing costs.

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

class Mover {
 public:
  virtual ~Mover() = default;

  // Throws std::bad_alloc or c10::Error.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* block) noexcept = 0;

  // Starts a copy behind all that the device's current stream was given so far. Copies run in the
  // order in which they were started.
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy_back(void* device, const void* host, std::size_t bytes) = 0;

  // All copies that were started so far; null if they are done.
  using Mark = std::shared_ptr<void>;
  virtual Mark mark() = 0;
  // Makes work that the device's current stream is given from here on run behind those copies.
  virtual void wait(const Mark& mark) = 0;

  // The observer of copies and waits from here on; null: nobody. Not while a step runs.
  void observe(MoveObserver* observer) { observer_ = observer; }

 protected:
  template <class Start>
  void tell(Move move, c10::Stream stream, const Start& start) {
    if (observer_ == nullptr) {
      start();
    } else {
      observer_->around(move, stream, start);
    }
  }

 private:
  MoveObserver* observer_ = nullptr;
};

// Throws Refused for a device that nothing can be moved from in this build.
std::unique_ptr<Mover> make_mover(c10::Device device);

// Weak: programs that are linked without CUDA have none.
[[gnu::weak]] std::unique_ptr<Mover> make_cuda_mover(c10::Device device);

}  // namespace rematch
