// The storage of one of a record's values, on the host.
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

  // Whether a tensor is data of its own that can be copied by its bytes.
  static bool is_possible(const at::Tensor& tensor);

  std::int32_t value() const { return value_; }
  // Has an op written to the tensor since? Then the copy may be torn.
  bool is_stale() const { return version_.is_stale(); }
  std::string describe() const;  // the tensor, for messages

  // Starts the copy back: a tensor of the same sizes and strides at the same place in a storage of
  // its own, with a version counter of its own. Call once.
  at::Tensor restore();

 private:
  std::int32_t value_;
  HostBlock block_;
  at::Tensor shell_;  // the tensor without its data
  c10::Allocator* allocator_;
  SavedVersion version_;
};

}  // namespace rematch
