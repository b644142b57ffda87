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

  // A leaf that requires grad, unless weights are frozen. On meta it has no data; elsewhere it is
  // filled by hash of its name.
  at::Tensor add(const std::string& name, at::IntArrayRef sizes, InitialValues values);
  // One that learns even where weights are frozen.
  at::Tensor add_learning(const std::string& name, at::IntArrayRef sizes, InitialValues values);

  // Whether weights added from here on are constants.
  void set_frozen(bool frozen) { frozen_ = frozen; }

  const std::vector<NamedTensor>& list() const { return list_; }                // these learn
  const std::vector<NamedTensor>& frozen_list() const { return frozen_list_; }  // these do not
  at::Device device() const { return device_; }

 private:
  at::Tensor make(const std::string& name, at::IntArrayRef sizes, InitialValues values) const;

  at::ScalarType dtype_;
  at::Device device_;
  bool frozen_ = false;
  std::vector<NamedTensor> list_, frozen_list_;
};

}  // namespace rematch
