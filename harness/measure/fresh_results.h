// Finds the results of an op that are in newly allocated memory. According to the op's schema, such
// a result aliases no argument.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <unordered_map>
#include <vector>

namespace rematch {

class FreshResults {
 public:
  // Calls `visit` with each fresh result that has a storage. `stack` ends with the op's results.
  void visit(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
             const std::function<void(const at::Tensor&)>& visit);

 private:
  std::unordered_map<const void*, std::vector<bool>> by_schema_;
};

}  // namespace rematch
