// Stores values in host memory, and counts their bytes. Blocks have exact sizes and are reused, so
// later steps need no allocations. LibTorch's own cache of pinned memory would round sizes up to
// powers of two.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "harness/engine/stores/mover.h"
#include "harness/engine/stores/value_store.h"

namespace rematch {

class HostStore final : public ValueStore {
 public:
  HostStore() = default;
  ~HostStore() override;
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  // Takes a free block, or allocates a new one, like Mover::allocate().
  std::unique_ptr<StoredBytes> put(const at::Tensor& tensor) override;
  Mark mark() override;
  StoreUse use() const override;
  void restart_counts() override;
  void observe(MoveObserver* observer) override;

 private:
  class Block;

  void* take(Mover* mover, std::size_t bytes);
  void give_back(Mover* mover, std::size_t bytes, void* memory) noexcept;
  void count(Bytes StoreUse::*counter, std::size_t bytes);
  Mover* mover_of(c10::Device device);

  mutable std::mutex mutex_;
  std::unordered_map<c10::Device, std::unique_ptr<Mover>> movers_;
  using Blocks = std::unordered_map<std::size_t, std::vector<void*>>;  // free blocks by size
  std::unordered_map<Mover*, Blocks> free_;
  StoreUse use_;
  MoveObserver* observer_ = nullptr;
};

}  // namespace rematch
