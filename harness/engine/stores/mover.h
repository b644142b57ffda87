// Allocates host memory, and copies between host and device. Each kind of device has its own mover:
// - CPU: a second allocation and memcpy.
// - meta: copies nothing, and returns a dummy address as host memory.
// - CUDA (cuda_mover.cpp): pinned memory and a separate stream.
// The stores, not the movers, count bytes.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rematch {

enum class Move : std::uint8_t {
  kCopy,  // a copy of one storage; on the CPU it is synchronous
  kJoin,  // later work on the stream waits for copies on another stream
};

// Observes copies and stream joins, to time them.
class MoveObserver {
 public:
  virtual ~MoveObserver() = default;
  // Must call `start`, which enqueues the move on `stream`. May be called on any thread.
  virtual void around(Move move, c10::Stream stream, const std::function<void()>& start) = 0;
};

class Mover {
 public:
  virtual ~Mover() = default;

  // Allocates host memory. Throws std::bad_alloc or c10::Error.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* block) noexcept = 0;

  // Starts a copy after all work issued so far on the device's current stream. Copies run in the
  // order in which they were started.
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy_back(void* device, const void* host, std::size_t bytes) = 0;

  // Marks all copies started so far. Returns null if these copies are done.
  using Mark = std::shared_ptr<void>;
  virtual Mark mark() = 0;
  // Makes later work on the device's current stream wait for the marked copies.
  virtual void wait(const Mark& mark) = 0;

  // Sets the observer of later copies and waits; null for none. Must not be called while a step
  // runs.
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

// Throws Refused if this build cannot move tensors from the device.
std::unique_ptr<Mover> make_mover(c10::Device device);

// A weak symbol: null in programs that are not linked with CUDA.
[[gnu::weak]] std::unique_ptr<Mover> make_cuda_mover(c10::Device device);

}  // namespace rematch
