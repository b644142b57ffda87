// Creates a model's parameters, in order, with their names and initial values.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/layers/init.h"
#include "models/model.h"

namespace rematch {

at::ScalarType dtype_of(const ModelSpec& spec);

class Parameters {
 public:
  Parameters(at::ScalarType dtype, at::Device device) : dtype_(dtype), device_(device) {}

  // A leaf that requires grad. On meta it has no data; elsewhere it is filled by hash of its name.
  at::Tensor add(const std::string& name, at::IntArrayRef sizes, InitialValues values);

  const std::vector<NamedTensor>& list() const { return list_; }
  at::Device device() const { return device_; }

 private:
  at::ScalarType dtype_;
  at::Device device_;
  std::vector<NamedTensor> list_;
};

}  // namespace rematch
