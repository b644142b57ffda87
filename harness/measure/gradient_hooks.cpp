#include "harness/measure/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace rematch {

using torch::autograd::PostAccumulateGradHook;
using torch::autograd::impl::post_acc_grad_hooks;

class GradientHooks::Hook final : public PostAccumulateGradHook {
 public:
  Hook(Observer observer, std::unique_ptr<PostAccumulateGradHook> behind)
      : observer_(std::move(observer)), behind_(std::move(behind)) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    observer_(parameter);
    if (behind_ != nullptr) (*behind_)(parameter);
  }
  std::unique_ptr<PostAccumulateGradHook> take_behind() { return std::move(behind_); }

 private:
  Observer observer_;
  std::unique_ptr<PostAccumulateGradHook> behind_;
};

GradientHooks::GradientHooks(std::vector<at::Tensor> parameters, const Observer& observer)
    : parameters_(std::move(parameters)) {
  for (const at::Tensor& parameter : parameters_) {
    auto hook = std::make_unique<Hook>(observer, std::move(post_acc_grad_hooks(parameter)));
    hooks_.push_back(hook.get());
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::move(hook));
  }
}

// Keeps any hook that the program has set in the meantime. Restores hooks in reverse order, because
// a parameter may be listed twice.
GradientHooks::~GradientHooks() {
  for (std::size_t index = parameters_.size(); index-- > 0;) {
    std::unique_ptr<PostAccumulateGradHook>& current = post_acc_grad_hooks(parameters_[index]);
    if (current.get() != hooks_[index]) continue;
    std::unique_ptr<PostAccumulateGradHook> behind = hooks_[index]->take_behind();
    current = std::move(behind);
  }
}

}  // namespace rematch
