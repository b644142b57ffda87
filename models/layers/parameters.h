// Creates a model's parameters, in order, with their names and initial values, which are
// reproducible to the bit in any language.
//
// Note [Hash initialisation]
// Element i of parameter `name` (row-major) is, all in float32:
//   u = (top 24 bits of splitmix64(fnv1a64(name) + i) - 2^23) * 2^-23     exact, in [-1, 1)
//   value = centre + amplitude * u
// with wrapping 64-bit integers. `amplitude` is 1, or sqrt(1 / fan_in) computed in double and
// rounded to float32, where centre is 0, and 2^-3 where centre is 1, so that one rounding happens
// at most. bfloat16 parameters hold that value rounded to nearest, ties to even.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace rematch {

struct InitialValues {
  float centre = 0.0F;
  float amplitude = 0.0F;
};

InitialValues uniform_by_fan_in(std::int64_t fan_in);
InitialValues near_one();
// Between -1 and 1. An embedding of this size outweighs what the first blocks add to every token
// alike, or a router would send all tokens to the same experts.
InitialValues unit();

// Fills a contiguous float32 or bfloat16 CPU tensor.
void fill_by_hash(const at::Tensor& tensor, std::string_view name, InitialValues values);

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
