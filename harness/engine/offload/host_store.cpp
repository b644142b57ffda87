#include "harness/engine/offload/host_store.h"

#include <algorithm>

namespace rematch {
namespace {

Bytes as_bytes(std::size_t bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }

}  // namespace

void HostBlock::copy_from(const void* device_data) {
  const auto& [store, mover, bytes] = memory_.get_deleter();
  mover->copy_out(memory_.get(), device_data, bytes);
  const std::lock_guard<std::mutex> lock(store->mutex_);
  store->memory_.copied_out += as_bytes(bytes);
}

void HostBlock::copy_to(void* device_data) {
  const auto& [store, mover, bytes] = memory_.get_deleter();
  mover->copy_back(device_data, memory_.get(), bytes);
  const std::lock_guard<std::mutex> lock(store->mutex_);
  store->memory_.copied_back += as_bytes(bytes);
}

// A copy may still be using the block. A later copy with the same block runs after that copy,
// because copies run in order.
void HostBlock::GiveBack::operator()(void* memory) const noexcept {
  const std::lock_guard<std::mutex> lock(store->mutex_);
  store->memory_.in_use -= as_bytes(bytes);
  store->free_[mover][bytes].push_back(memory);
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
  return HostBlock(memory, {this, mover, bytes});
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
