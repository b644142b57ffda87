#include "harness/trace/program_holds.h"

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

std::vector<OpId> ProgramHolds::freed_at(std::size_t num_storages) const {
  std::vector<OpId> ops(num_storages, kNone);
  for (std::size_t id = 0; id < entries_.size() && id < num_storages; ++id) {
    ops[id] = entries_[id].freed_at;
  }
  return ops;
}

ProgramHolds::Entry& ProgramHolds::entry(StorageId storage) {
  const auto index = static_cast<std::size_t>(storage);
  if (index >= entries_.size()) entries_.resize(index + 1);
  return entries_[index];
}

}  // namespace rematch
