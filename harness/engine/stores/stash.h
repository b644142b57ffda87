// The values of one record that are in stores. See Note [Lifetime of stored values].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "harness/engine/stores/stored_value.h"
#include "harness/engine/stores/stores.h"

namespace rematch {

class Stash {
 public:
  explicit Stash(const Stores& stores) : stores_(stores) {}
  // Waits for all copies, because the memory of the values and of the stores may be reused.
  ~Stash();
  Stash(const Stash&) = delete;
  Stash& operator=(const Stash&) = delete;

  // A closed stash stores no values. The stash of the plan's last region is closed, because
  // backward needs the values of this region right after forward.
  void set_open(bool is_open) { is_open_ = is_open; }

  // Starts to copy the value to the store. Does nothing if the stash is closed, or if the tensor's
  // bytes cannot be copied. `tensor` is a detached value of the record.
  void put(std::int32_t value, const at::Tensor& tensor, Store store);
  // Returns the store that contains the value; kDevice if no store does.
  Store store_of(std::int32_t value) const;
  // Waits until the value is copied, and discards the copy, because the value is about to be
  // overwritten.
  void drop(std::int32_t value);
  bool empty() const { return values_.empty(); }

  // Call this after the last put(). After wait_until_put(), the memory of the original values may
  // be reused.
  void close() { put_ = stores_.mark(); }
  void wait_until_put() { wait(put_); }
  const std::vector<StoredValue>& values() const { return values_; }

  // Calls `bring_back` for each value, and empties the stash. `bring_back` must start the copy back
  // to the device. The values are readable after wait_until_back().
  template <class BringBack>
  void take_back(const BringBack& bring_back) {
    if (values_.empty()) return;
    wait(put_);
    for (StoredValue& value : values_) bring_back(value);
    values_.clear();
    back_ = stores_.mark();
  }
  void wait_until_back() { wait(back_); }

 private:
  static void wait(ValueStore::Mark& mark);

  const Stores& stores_;
  bool is_open_ = false;
  std::vector<StoredValue> values_;
  ValueStore::Mark put_;   // copies to the stores
  ValueStore::Mark back_;  // copies back
};

}  // namespace rematch
