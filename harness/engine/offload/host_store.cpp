#include "harness/engine/offload/host_store.h"

#include <algorithm>

namespace rematch {
namespace {

Bytes as_bytes(std::size_t bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }

}  // namespace

HostBlock::HostBlock(HostBlock&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      mover_(other.mover_),
      memory_(other.memory_),
      bytes_(other.bytes_) {}

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  store_ = std::exchange(other.store_, nullptr);
  mover_ = other.mover_;
  memory_ = other.memory_;
  bytes_ = other.bytes_;
  return *this;
}

HostBlock::~HostBlock() { give_back(); }

void HostBlock::copy_from(const void* device_data) {
  mover_->copy_out(memory_, device_data, bytes_);
  const std::lock_guard<std::mutex> lock(store_->mutex_);
  store_->memory_.copied_out += as_bytes(bytes_);
}

void HostBlock::copy_to(void* device_data) {
  mover_->copy_back(device_data, memory_, bytes_);
  const std::lock_guard<std::mutex> lock(store_->mutex_);
  store_->memory_.copied_back += as_bytes(bytes_);
}

// A copy may be under way: whoever gets the block next copies behind it.
void HostBlock::give_back() noexcept {
  if (store_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(store_->mutex_);
  store_->memory_.in_use -= as_bytes(bytes_);
  store_->free_[mover_][bytes_].push_back(memory_);
  store_ = nullptr;
}

HostStore::~HostStore() {
  for (const auto& [mover, by_size] : free_) {
    for (const auto& [bytes, blocks] : by_size) {
      for (void* block : blocks) mover->free(block);
    }
  }
}

HostBlock HostStore::take(c10::Device device, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Mover* mover = mover_of(device);
  std::vector<void*>& blocks = free_[mover][bytes];
  if (blocks.empty()) {
    blocks.push_back(mover->allocate(bytes));
    ++memory_.allocations;
  }
  void* memory = blocks.back();
  blocks.pop_back();
  memory_.in_use += as_bytes(bytes);
  memory_.peak = std::max(memory_.peak, memory_.in_use);
  return HostBlock(this, mover, memory, bytes);
}

Mover* HostStore::mover_of(c10::Device device) {
  std::unique_ptr<Mover>& mover = movers_[device];
  if (mover == nullptr) {
    mover = make_mover(device);
    mover->observe(observer_);
  }
  return mover.get();
}

HostStore::Marks HostStore::mark() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Marks marks;
  for (const auto& [device, mover] : movers_) {
    if (Mover::Mark mark = mover->mark()) marks.emplace_back(mover.get(), std::move(mark));
  }
  return marks;
}

void HostStore::wait(Marks& marks) {
  for (const auto& [mover, mark] : marks) mover->wait(mark);
  marks.clear();
}

HostMemory HostStore::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memory_;
}

void HostStore::observe(MoveObserver* observer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  observer_ = observer;
  for (const auto& [device, mover] : movers_) mover->observe(observer);
}

void HostStore::restart_counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_ = {.in_use = memory_.in_use, .peak = memory_.in_use, .allocations = memory_.allocations};
}

}  // namespace rematch
