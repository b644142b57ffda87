// A place that keeps the bytes of values outside their own memory, from forward to backward. One
// class for each store of the table in policies/plan/treatment.h; the table says what a store can
// hold and which memory it takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "harness/engine/recording.h"

namespace rematch {

class MoveObserver;

// The bytes of one value in a store. The destructor gives the memory back to the store, which must
// outlive this object.
class StoredBytes {
 public:
  virtual ~StoredBytes() = default;
  // Starts to bring the bytes back. `data` has room for the value's whole storage.
  virtual void bring_back(void* data) = 0;
};

// Thread-safe.
class ValueStore {
 public:
  virtual ~ValueStore() = default;

  // Starts to copy the tensor's whole storage into the store. The copy runs after all work issued
  // so far on the tensor's device. Throws Refused if this build cannot copy from the device.
  virtual std::unique_ptr<StoredBytes> put(const at::Tensor& tensor) = 0;

  // Marks all copies started so far, in both directions. Calling the mark makes later work on the
  // device wait for these copies. Returns an empty function if the copies are done.
  using Mark = std::function<void()>;
  virtual Mark mark() = 0;

  // Counts since restart_counts(), and the memory in use.
  virtual StoreUse use() const = 0;
  virtual void restart_counts() = 0;

  // Sets the observer of later copies; null for none. Must not be called while a step runs.
  virtual void observe(MoveObserver* observer) = 0;
};

}  // namespace rematch
