// Blocks of host memory for what plans offload, of exact sizes, given back and used again: a step
// that allocates blocks leaves them for all later ones. (LibTorch's own cache of pinned memory
// rounds sizes up to powers of two.) Counts bytes.
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

// Host memory that holds one storage. Goes back to the store, which must outlive it.
class HostBlock {
 public:
  // As the mover's, of the block's bytes.
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

// The store of one Checkpoint; for any thread.
class HostStore {
 public:
  HostStore() = default;
  ~HostStore();
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  // Throws Refused for a device that nothing can be moved from, and what the mover throws.
  HostBlock take(c10::Device device, std::size_t bytes);

  // As the movers', of all devices.
  using Marks = std::vector<std::pair<Mover*, Mover::Mark>>;
  Marks mark();
  // Empties `marks`.
  static void wait(Marks& marks);

  HostMemory memory() const;
  void restart_counts();

  // As the movers', of all devices.
  void observe(MoveObserver* observer);

 private:
  friend class HostBlock;
  Mover* mover_of(c10::Device device);

  mutable std::mutex mutex_;
  std::unordered_map<c10::Device, std::unique_ptr<Mover>> movers_;
  using Blocks = std::unordered_map<std::size_t, std::vector<void*>>;  // by size
  std::unordered_map<Mover*, Blocks> free_;
  HostMemory memory_;
  MoveObserver* observer_ = nullptr;
};

}  // namespace rematch
