// Host memory for offloaded values. Blocks have exact sizes and are reused, so the blocks that one
// step allocates serve all later steps. LibTorch's own cache of pinned memory would round sizes up
// to powers of two. The store also counts bytes.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/engine/offload/mover.h"
#include "harness/engine/recording.h"

namespace rematch {

class HostStore;

// Host memory that holds one storage. Its destructor returns the memory to the store, which must
// outlive the block.
class HostBlock {
 public:
  // Like Mover::copy_out() and Mover::copy_back(), for all bytes of the block. Both functions also
  // count the copied bytes.
  void copy_from(const void* device_data);
  void copy_to(void* device_data);
  std::size_t bytes() const { return memory_.get_deleter().bytes; }

 private:
  friend class HostStore;
  struct GiveBack {
    HostStore* store;
    Mover* mover;
    std::size_t bytes;
    void operator()(void* memory) const noexcept;
  };
  HostBlock(void* memory, GiveBack give_back) : memory_(memory, give_back) {}

  std::unique_ptr<void, GiveBack> memory_;
};

// The store of one Checkpoint. Thread-safe.
class HostStore {
 public:
  HostStore() = default;
  ~HostStore();
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  // Returns a free block, or allocates one. Throws Refused if this build cannot move tensors from
  // the device. Throws what Mover::allocate() throws.
  HostBlock take(c10::Device device, std::size_t bytes);

  // Like Mover::mark() and Mover::wait(), for all devices.
  using Marks = std::vector<std::pair<Mover*, Mover::Mark>>;
  Marks mark();
  // Waits for the marks and clears `marks`.
  static void wait(Marks& marks);

  HostMemory memory() const;
  void restart_counts();

  // Like Mover::observe(), for all devices.
  void observe(MoveObserver* observer);

 private:
  friend class HostBlock;
  Mover* mover_of(c10::Device device);

  mutable std::mutex mutex_;
  std::unordered_map<c10::Device, std::unique_ptr<Mover>> movers_;
  using Blocks = std::unordered_map<std::size_t, std::vector<void*>>;  // free blocks by size
  std::unordered_map<Mover*, Blocks> free_;
  HostMemory memory_;
  MoveObserver* observer_ = nullptr;
};

}  // namespace rematch
