#include "harness/engine/stores/stash.h"

#include <algorithm>
#include <utility>

namespace rematch {

Stash::~Stash() {
  wait(put_);
  wait(back_);
}

void Stash::put(std::int32_t value, const at::Tensor& tensor, Store store) {
  if (is_open_ && StoredValue::is_possible(tensor)) {
    values_.emplace_back(value, tensor, store, stores_[store]);
  }
}

Store Stash::store_of(std::int32_t value) const {
  const auto found = std::find_if(values_.begin(), values_.end(), [value](const StoredValue& each) {
    return each.value() == value;
  });
  return found == values_.end() ? Store::kDevice : found->store();
}

void Stash::drop(std::int32_t value) {
  if (values_.empty()) return;
  const auto is_its = [value](const StoredValue& each) { return each.value() == value; };
  if (std::erase_if(values_, is_its) == 0) return;
  ValueStore::Mark copies = stores_.mark();
  wait(copies);
}

void Stash::wait(ValueStore::Mark& mark) {
  if (const ValueStore::Mark copies = std::exchange(mark, {})) copies();
}

}  // namespace rematch
