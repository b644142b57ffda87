#include "harness/engine/stores/host_store.h"

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

Bytes as_bytes(std::size_t bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }

}  // namespace

// Host memory that holds one storage.
class HostStore::Block final : public StoredBytes {
 public:
  Block(HostStore& store, Mover* mover, std::size_t bytes)
      : store_(store), mover_(mover), bytes_(bytes), memory_(store.take(mover, bytes)) {}
  // Does not wait for a copy that still uses the memory. Copies run in order, so a later copy into
  // the same memory runs after the earlier copy.
  ~Block() override { store_.give_back(mover_, bytes_, memory_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void copy_from(const void* data) {
    mover_->copy_out(memory_, data, bytes_);
    store_.count(&StoreUse::copied_out, bytes_);
  }
  void bring_back(void* data) override {
    mover_->copy_back(data, memory_, bytes_);
    store_.count(&StoreUse::copied_back, bytes_);
  }

 private:
  HostStore& store_;
  Mover* mover_;
  std::size_t bytes_;
  void* memory_;
};

HostStore::~HostStore() {
  for (const auto& [mover, by_size] : free_) {
    for (const auto& [bytes, blocks] : by_size) {
      for (void* block : blocks) mover->free(block);
    }
  }
}

std::unique_ptr<StoredBytes> HostStore::put(const at::Tensor& tensor) {
  auto block = std::make_unique<Block>(*this, mover_of(tensor.device()), tensor.storage().nbytes());
  block->copy_from(tensor.storage().data());
  return block;
}

void* HostStore::take(Mover* mover, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*>& blocks = free_[mover][bytes];
  if (blocks.empty()) {
    blocks.push_back(mover->allocate(bytes));
    ++use_.allocations;
  }
  void* memory = blocks.back();
  blocks.pop_back();
  use_.in_use += as_bytes(bytes);
  use_.peak = std::max(use_.peak, use_.in_use);
  return memory;
}

void HostStore::give_back(Mover* mover, std::size_t bytes, void* memory) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  use_.in_use -= as_bytes(bytes);
  free_[mover][bytes].push_back(memory);
}

void HostStore::count(Bytes StoreUse::*counter, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  use_.*counter += as_bytes(bytes);
}

Mover* HostStore::mover_of(c10::Device device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Mover>& mover = movers_[device];
  if (mover == nullptr) {
    mover = make_mover(device);
    mover->observe(observer_);
  }
  return mover.get();
}

ValueStore::Mark HostStore::mark() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::pair<Mover*, Mover::Mark>> marks;
  for (const auto& [device, mover] : movers_) {
    if (Mover::Mark mark = mover->mark()) marks.emplace_back(mover.get(), std::move(mark));
  }
  if (marks.empty()) return {};
  return [marks = std::move(marks)] {
    for (const auto& [mover, mark] : marks) mover->wait(mark);
  };
}

StoreUse HostStore::use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return use_;
}

void HostStore::observe(MoveObserver* observer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  observer_ = observer;
  for (const auto& [device, mover] : movers_) mover->observe(observer);
}

void HostStore::restart_counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  StoreUse restarted;
  restarted.in_use = restarted.peak = use_.in_use;
  restarted.allocations = use_.allocations;
  use_ = restarted;
}

}  // namespace rematch
