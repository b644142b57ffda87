// A copy, on the host, of the storage of one of a record's values.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstdint>
#include <string>

#include "harness/engine/offload/host_store.h"
#include "harness/engine/record/saved_version.h"

namespace rematch {

class HostCopy {
 public:
  // Starts the copy. `tensor` is a value of the record, without its graph.
  HostCopy(std::int32_t value, const at::Tensor& tensor, HostStore& store);

  // Returns whether the tensor is plain and has data, so that its bytes can be copied.
  static bool is_possible(const at::Tensor& tensor);

  std::int32_t value() const { return value_; }
  // Returns whether an op has written to the tensor since the copy started. The copy may then be
  // torn.
  bool is_stale() const { return version_.is_stale(); }
  std::string describe() const;  // the tensor's description, for messages

  // Starts the copy back to the device. Returns a tensor of the same sizes, strides and offset,
  // with its own storage and version counter. Call this once.
  at::Tensor restore();

 private:
  std::int32_t value_;
  HostBlock block_;
  at::Tensor shell_;  // the tensor's metadata, without its data
  c10::Allocator* allocator_;
  SavedVersion version_;
};

}  // namespace rematch
