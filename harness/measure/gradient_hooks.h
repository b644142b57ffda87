// Calls a function for each parameter as soon as autograd has accumulated the parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace rematch {

// Sets a hook on each parameter. A tensor can have only one such hook, so this hook also calls the
// hook that the program had set, for example to step an optimizer. The destructor restores the
// program's hook.
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
