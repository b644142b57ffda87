// Hears of every parameter's gradient as soon as autograd has accumulated it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace rematch {

// While it lives. A tensor has one hook of the kind: the program's own, which may step an optimizer
// and drop the gradient, is called behind this one, and is there again afterwards.
class GradientHooks {
 public:
  using Told = std::function<void(const at::Tensor& parameter)>;

  GradientHooks(std::vector<at::Tensor> parameters, const Told& told);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  class Hook;

  std::vector<at::Tensor> parameters_;
  std::vector<Hook*> hooks_;  // the parameters own them
};

}  // namespace rematch
