// Tests on the dry device that one simulated rank allocates and copies as much as the real rank.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <string>
#include <vector>

#include "harness/ranks/ranks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

std::int64_t requested_bytes() {
  return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0).requested_bytes[0].current;
}

at::Tensor run(const char* collective, const std::vector<c10::IValue>& arguments) {
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  dispatcher.findSchemaOrThrow(collective, "").callBoxed(&stack);
  dispatcher.findSchemaOrThrow("_c10d_functional::wait_tensor", "").callBoxed(&stack);
  return stack.front().toTensor();
}

TEST_CASE("one simulated rank of eight allocates as much device memory as a real rank",
          "[device]") {
  setenv("DRY_CUDA_CARD", "h100", 1);
  const PretendedRanks ranks(3, {{"tp", {0, 1, 2, 3, 4, 5, 6, 7}}});
  const at::Tensor x = at::empty({1024, 1024}, at::TensorOptions().device(at::kCUDA));
  const std::int64_t before = requested_bytes();
  const std::int64_t world = 8;
  const at::Tensor all = run("_c10d_functional::all_gather_into_tensor", {x, world, "tp"});
  CHECK(all.sizes() == at::IntArrayRef{8192, 1024});
  CHECK(requested_bytes() - before == 32 * kMib);
  const at::Tensor part = run("_c10d_functional::reduce_scatter_tensor", {x, "sum", world, "tp"});
  CHECK(part.sizes() == at::IntArrayRef{128, 1024});
  CHECK(requested_bytes() - before == 32 * kMib + kMib / 2);
  const at::Tensor sum = run("_c10d_functional::all_reduce", {x, "sum", "tp"});
  CHECK(requested_bytes() - before == 36 * kMib + kMib / 2);
}

}  // namespace
}  // namespace rematch::testing
