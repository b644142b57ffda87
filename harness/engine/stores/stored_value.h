// A value that was copied to a store: the copy of its storage, and what is needed to restore the
// tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "harness/engine/record/saved_version.h"
#include "harness/engine/stores/value_store.h"
#include "policies/plan/treatment.h"

namespace rematch {

class StoredValue {
 public:
  // Starts to copy the value to the store `values`; `store` is the store's kind. `tensor` is a
  // detached value of the record.
  StoredValue(std::int32_t value, const at::Tensor& tensor, Store store, ValueStore& values);

  // Returns whether the tensor's bytes can be copied. The tensor must be plain and have data.
  static bool is_possible(const at::Tensor& tensor);

  std::int32_t value() const { return value_; }
  Store store() const { return store_; }
  // Returns whether an op has written to the tensor since the copy started. The copy may then mix
  // old and new content.
  bool is_stale() const { return version_.is_stale(); }
  std::string describe() const;  // the tensor's description, for messages

  // Starts the copy back. Returns a tensor of the same sizes, strides and offset, with its own
  // storage and version counter. Call this only once.
  at::Tensor restore();

 private:
  std::int32_t value_;
  Store store_;
  std::size_t num_bytes_;
  std::unique_ptr<StoredBytes> bytes_;
  at::Tensor shell_;  // the tensor's metadata, without its data
  c10::Allocator* allocator_;
  SavedVersion version_;
};

}  // namespace rematch
