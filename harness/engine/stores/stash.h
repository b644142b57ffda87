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

  // False in the plan's last region, whose values stay where they are.
  void set_open(bool is_open) { is_open_ = is_open; }

  // Starts to copy the value to the store. Does nothing if the stash is not open, or if the
  // tensor's bytes cannot be copied. `tensor` is a value of the record, without its graph.
  void put(std::int32_t value, const at::Tensor& tensor, Store store);
  // Returns the store that the value was put in; kDevice if it was put in none.
  Store store_of(std::int32_t value) const;
  // Drops the copy of a value whose own memory is about to be reused, after the copy is done.
  void drop(std::int32_t value);
  bool empty() const { return values_.empty(); }

  // Ends the copies of forward. wait_until_put() makes the values' own memory free to be reused.
  void close() { put_ = stores_.mark(); }
  void wait_until_put() { wait(put_); }
  const std::vector<StoredValue>& values() const { return values_; }

  // Gives the values to `bring_back`, which starts to bring them back, and empties the stash.
  // wait_until_back() makes the values readable.
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
  ValueStore::Mark put_;   // the copies of forward
  ValueStore::Mark back_;  // the copies of backward
};

}  // namespace rematch
