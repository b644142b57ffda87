// A store keeps copies of values in separate memory from forward to backward. Each store in the
// table of policies/plan/treatment.h is implemented by one class. The table lists what a store can
// hold, and which memory it uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "harness/engine/recording.h"

namespace rematch {

class MoveObserver;

// The bytes of one value in a store. The destructor returns the memory to the store, which must
// outlive this object.
class StoredBytes {
 public:
  virtual ~StoredBytes() = default;
  // Starts to copy the bytes back. `data` must have room for the value's whole storage.
  virtual void bring_back(void* data) = 0;
};

// Thread-safe.
class ValueStore {
 public:
  virtual ~ValueStore() = default;

  // Starts to copy the tensor's whole storage into the store. The copy runs after all work issued
  // so far on the tensor's device. Throws Refused if this build cannot copy from the device.
  virtual std::unique_ptr<StoredBytes> put(const at::Tensor& tensor) = 0;

  // Returns a function that makes later work on the device wait for all copies started so far, in
  // both directions. Returns an empty function if these copies are done.
  using Mark = std::function<void()>;
  virtual Mark mark() = 0;

  // Memory in use, and bytes copied since restart_counts().
  virtual StoreUse use() const = 0;
  virtual void restart_counts() = 0;

  // Sets the observer of later copies; null for none. Must not be called while a step runs.
  virtual void observe(MoveObserver* observer) = 0;
};

}  // namespace rematch
