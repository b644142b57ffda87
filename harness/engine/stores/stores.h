// The stores of one Checkpoint.
#pragma once

#include <memory>

#include "harness/engine/stores/value_store.h"
#include "policies/plan/treatment.h"

namespace rematch {

class Stores {
 public:
  Stores();

  // The store must not be kDevice.
  ValueStore& operator[](Store store) const { return *stores_[store]; }

  // Marks all copies started so far, in all stores.
  ValueStore::Mark mark() const;
  StoreUse use() const;  // the sum over all stores
  void restart_counts() const;
  void observe(MoveObserver* observer) const;

 private:
  ByStore<std::unique_ptr<ValueStore>> stores_;  // null for the device
};

}  // namespace rematch
