#include "harness/engine/stores/stores.h"

#include <utility>
#include <vector>

#include "harness/engine/stores/host_store.h"

namespace rematch {
namespace {

std::unique_ptr<ValueStore> make_store(Store store) {
  switch (store) {
    case Store::kDevice:
      return nullptr;
    case Store::kHost:
      return std::make_unique<HostStore>();
  }
  return nullptr;
}

}  // namespace

Stores::Stores() {
  for (const StoreTraits& store : kStores) stores_[store.store] = make_store(store.store);
}

ValueStore::Mark Stores::mark() const {
  std::vector<ValueStore::Mark> marks;
  for (const auto& store : stores_.values) {
    if (store == nullptr) continue;
    if (ValueStore::Mark mark = store->mark()) marks.push_back(std::move(mark));
  }
  if (marks.empty()) return {};
  return [marks = std::move(marks)] {
    for (const ValueStore::Mark& mark : marks) mark();
  };
}

StoreUse Stores::use() const {
  StoreUse sum;
  for (const auto& store : stores_.values) {
    if (store == nullptr) continue;
    const StoreUse use = store->use();
    sum.in_use += use.in_use;
    sum.peak += use.peak;
    sum.copied_out += use.copied_out;
    sum.copied_back += use.copied_back;
    sum.allocations += use.allocations;
  }
  return sum;
}

void Stores::restart_counts() const {
  for (const auto& store : stores_.values) {
    if (store != nullptr) store->restart_counts();
  }
}

void Stores::observe(MoveObserver* observer) const {
  for (const auto& store : stores_.values) {
    if (store != nullptr) store->observe(observer);
  }
}

}  // namespace rematch
