// Calls a function with each parameter as soon as autograd has accumulated its gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace rematch {

// Registers the hooks while it lives. A tensor has only one such hook. The program may have set a
// hook, for example to step an optimizer and drop the gradient. The program's hook is called after
// this one and restored at the end.
class GradientHooks {
 public:
  using Observer = std::function<void(const at::Tensor& parameter)>;

  GradientHooks(std::vector<at::Tensor> parameters, const Observer& observer);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  class Hook;

  std::vector<at::Tensor> parameters_;
  std::vector<Hook*> hooks_;  // the parameters own the hooks
};

}  // namespace rematch
