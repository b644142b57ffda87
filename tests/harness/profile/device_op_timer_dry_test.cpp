// Tests on the dry device that op times are measured with CUDA events. The times mean nothing,
// because no kernels run.
#include "harness/profile/device_op_timer.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

using Ops = std::vector<OpFigure<DeviceOpTimer::Duration>>;

std::vector<std::string> names_of(const Ops& ops) {
  std::vector<std::string> names;
  for (const auto& op : ops) names.push_back(*op.name);
  return names;
}

// Ignores views, which launch nothing.
bool all_kernels_took_time(const Ops& ops) {
  return std::all_of(ops.begin(), ops.end(), [](const auto& op) {
    const bool is_view = *op.name == "aten::t" || *op.name == "aten::detach";
    return is_view || op.figure.count() > 0;
  });
}

TEST_CASE("ops are timed with CUDA events in forward, and in backward on autograd's thread",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const c10::Device device(c10::kCUDA, 0);
  const at::Tensor x = at::ones({8, 8}, at::TensorOptions().device(device));
  x.set_requires_grad(true);
  const at::Tensor gradient = at::ones({8, 8}, at::TensorOptions().device(device));
  DeviceOpTimer timer(device);
  Ops forward, backward;
  {
    const OpModeGuard watch(&timer);
    const BackwardThreadsGuard watch_backward(&timer);
    timer.set_list(&forward);
    const at::Tensor y = at::relu(at::mm(x, x));
    timer.set_list(&backward);
    y.backward(gradient);
    timer.set_list(nullptr);
    at::relu(gradient);  // not timed, because the timer has no list to store times in
  }
  CHECK(names_of(forward) == std::vector<std::string>{"aten::mm", "aten::relu"});
  CHECK_FALSE(all_kernels_took_time(forward));
  timer.finish();
  CHECK(all_kernels_took_time(forward));
  CHECK(backward.size() >= 3);  // backward of relu, and two matmuls
  CHECK(names_of(backward).front() == "aten::threshold_backward");
  CHECK(all_kernels_took_time(backward));
}

}  // namespace
}  // namespace rematch
