#include "policies/predict/step/store_ledger.h"

#include <algorithm>
#include <utility>

namespace rematch {

bool StoreLedger::Stash::contains(int storage) const {
  return values_ != nullptr &&
         std::any_of(values_->begin(), values_->end(),
                     [&](const StoredStorage& value) { return value.storage == storage; });
}

void StoreLedger::put_results(Stash& stash, std::int32_t op) {
  if (stash.values_ == nullptr) return;
  while (stash.num_put_ < stash.values_->size()) {
    const StoredStorage& next = (*stash.values_)[stash.num_put_];
    if (next.is_input || next.op > op) return;
    put_next(stash);
  }
}

void StoreLedger::put_inputs(Stash& stash) {
  if (stash.values_ == nullptr) return;
  while (stash.num_put_ < stash.values_->size()) put_next(stash);
}

void StoreLedger::put_next(Stash& stash) {
  const StoredStorage& value = (*stash.values_)[stash.num_put_++];
  const StoreTraits& store = traits_of(value.store);
  const Bytes bytes = stash.graph_->storages[value.storage].bytes;
  stash.device_copies_ += store.device_bytes(bytes);
  device_copies_ += store.device_bytes(bytes);
  stash.host_copies_ += store.host_bytes(bytes);
  host_copies_ += store.host_bytes(bytes);
  host_.copied_out += store.host_bytes(bytes);
  host_.peak = std::max(host_.peak, host_copies_);
}

bool StoreLedger::leave(Stash& stash) {
  if (stash.num_put_ == 0 || stash.place_ != Stash::Place::kStill) return false;
  stash.place_ = Stash::Place::kAway;
  return true;
}

void StoreLedger::bring_back(Stash& stash) {
  if (stash.place_ == Stash::Place::kAway) {
    stash.place_ = Stash::Place::kBroughtBack;
    brought_back_ += bytes_of(*stash.values_, *stash.graph_);
    host_.copied_back += stash.host_copies_;
  }
  drop_copies(stash);
}

void StoreLedger::drop_copies(Stash& stash) {
  device_copies_ -= std::exchange(stash.device_copies_, Bytes{});
  host_copies_ -= std::exchange(stash.host_copies_, Bytes{});
}

void StoreLedger::release(const Stash& stash, int storage) {
  if (stash.place_ == Stash::Place::kBroughtBack) {
    brought_back_ -= stash.graph_->storages[storage].bytes;
  }
}

void StoreLedger::release_inputs(const Stash& stash) {
  if (stash.values_ == nullptr) return;
  for (const StoredStorage& value : *stash.values_) {
    if (value.is_input) release(stash, value.storage);
  }
}

}  // namespace rematch
