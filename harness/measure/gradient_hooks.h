// Calls a function with each parameter as soon as autograd has accumulated its gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace rematch {

// Each parameter has a hook while this object lives. A tensor can have only one such hook, and the
// program may already have set one, for example to step an optimizer and drop the gradient. This
// object's hook calls the program's hook afterwards. The destructor restores the program's hook.
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
