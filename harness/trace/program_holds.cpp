#include "harness/trace/program_holds.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <iterator>
#include <memory>

namespace rematch {

void ProgramHolds::watch(StorageId storage, const c10::Storage& tensors_storage) {
  Entry& known = entry(storage);
  if (known.storage) return;
  known.storage = tensors_storage.getWeakStorageImpl();
  held_.push_back(storage);
}

void ProgramHolds::look(OpId op) {
  for (std::size_t index = 0; index < held_.size();) {
    if (is_held(held_[index])) {
      ++index;
      continue;
    }
    entry(held_[index]).freed_at = op;
    held_[index] = held_.back();
    held_.pop_back();
  }
}

bool ProgramHolds::is_held(StorageId storage) {
  const Entry& known = entry(storage);
  return known.storage && known.storage->use_count() > known.own_references;
}

IdTable<StorageId, std::optional<OpId>> ProgramHolds::freed_at(std::size_t num_storages) const {
  IdTable<StorageId, std::optional<OpId>> ops(num_storages);
  for (const StorageId id : ops.ids()) {
    if (entries_.contains(id)) ops[id] = entries_[id].freed_at;
  }
  return ops;
}

ProgramHolds::Entry& ProgramHolds::entry(StorageId storage) {
  if (!entries_.contains(storage)) entries_.resize(static_cast<std::size_t>(storage.index) + 1);
  return entries_[storage];
}

void NodeScopes::enter(ScopeId scope) {
  intervals_.push_back({at::sequence_number::peek(), scope});
}

std::optional<ScopeId> NodeScopes::scope_at_work() {
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr || node->sequence_nr() == UINT64_MAX) return last_;
  const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), node->sequence_nr(),
                                      [](std::uint64_t sequence, const Interval& interval) {
                                        return sequence < interval.first_sequence;
                                      });
  last_.reset();
  if (after != intervals_.begin()) last_ = std::prev(after)->scope;
  return last_;
}

}  // namespace rematch
