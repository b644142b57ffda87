// Tests which kernels fused ops launch on the dry device.
#include <ATen/ops/empty.h>

#include "harness/dry_cuda/kernel_names.h"
#include "kernels/fused/linear_cross_entropy.h"
#include "tests/support/catch.h"

namespace dry_cuda {
namespace {

// The fused loss splits the classes into chunks of at most 2^27 logits (tokens times classes), but
// of at least 8192 classes. 128256 classes therefore make 16 chunks for 65536 tokens, 8 chunks for
// 8192 tokens, and one chunk for 1024 tokens.
TEST_CASE("on a GPU the fused loss launches one kernel of each kind per chunk of classes") {
  constexpr std::int64_t kClasses = 128256;
  const auto options = at::TensorOptions().device(at::Device(at::kCUDA, 0)).dtype(at::kBFloat16);
  const at::Tensor weight = at::empty({kClasses, 64}, options);
  for (const auto& [tokens, chunks] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{65536, 16}, {8192, 8}, {1024, 1}}) {
    const at::Tensor target = at::empty({tokens}, options.dtype(at::kLong));
    dry_cuda_reset();
    rematch::fused::linear_cross_entropy(at::empty({tokens, 64}, options), weight, target);
    CHECK(num_kernels("rematch_cross_entropy_add_logits") == chunks);
    CHECK(num_kernels("dry_gemm_bf16") == chunks);
  }
}

}  // namespace
}  // namespace dry_cuda
