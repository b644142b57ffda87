// Checks which attention kernels LibTorch chooses on a card, and which kernels are launched.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "harness/dry_cuda/kernel_names.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/backend.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

using enum AttentionBackend;

const bool kCardChosen = setenv("DRY_CUDA_CARD", "h100", 1) == 0;

at::Tensor tokens(std::int64_t heads, at::ScalarType dtype) {
  return at::empty({1, heads, 256, 64}, at::TensorOptions().device(at::kCUDA, 0).dtype(dtype));
}

class DeterministicMode {
 public:
  explicit DeterministicMode(bool on) { set(on); }
  ~DeterministicMode() { set(false); }
  DeterministicMode(const DeterministicMode&) = delete;
  DeterministicMode& operator=(const DeterministicMode&) = delete;

 private:
  static void set(bool on) {
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  }
};

TEST_CASE("on sm_90 LibTorch chooses cuDNN in bfloat16, and flash in deterministic mode",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const std::int64_t key_heads : {8, 2}) {
    const at::Tensor q = tokens(8, at::kBFloat16);
    const at::Tensor k = tokens(key_heads, at::kBFloat16);
    CAPTURE(key_heads);
    CHECK(libtorch_attention(q, k, k, true) == kCudnn);
    const DeterministicMode on(true);
    CHECK(libtorch_attention(q, k, k, true) == kFlash);
  }
  const at::Tensor wide = tokens(8, at::kFloat);
  CHECK(libtorch_attention(wide, wide, wide, false) == kEfficient);
  use_attention_backend(kFlash);
}

TEST_CASE("LibTorch chooses the attention backend at the first op, and later ops keep this choice",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  use_attention_backend(kMath);
  let_libtorch_choose_attention();
  CHECK(attention_backend_in_use() == kMath);
  const DeterministicMode on(true);
  const at::Tensor q = tokens(8, at::kBFloat16);
  attention(q, q, q, /*causal=*/true);
  CHECK(attention_backend_in_use() == kFlash);
  let_libtorch_choose_attention();
  use_attention_backend(kMath);  // overrides LibTorch's choice
  attention(q, q, q, /*causal=*/true);
  CHECK(attention_backend_in_use() == kMath);
  use_attention_backend(kFlash);
}

// Query heads share key heads. For float32, LibTorch's own attention would then run matmuls, but
// rematch::attention runs a fused kernel.
TEST_CASE("each attention backend launches its own kernels", "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const auto& [backend, kernel] : std::vector<std::pair<AttentionBackend, const char*>>{
           {kFlash, "flash_fwd"}, {kEfficient, "fmha_cutlassF"}, {kMath, "dry_gemm"}}) {
    use_attention_backend(backend);
    const at::Tensor q = tokens(8, at::kBFloat16);
    const at::Tensor k = tokens(2, at::kBFloat16);
    dry_cuda_reset();
    attention(q, k, k, /*causal=*/true);
    CAPTURE(to_string(backend));
    CHECK(dry_cuda::num_kernels(kernel) > 0);
  }
  use_attention_backend(kFlash);
  let_libtorch_choose_attention();
  const at::Tensor q = tokens(8, at::kFloat);
  const at::Tensor k = tokens(2, at::kFloat);
  dry_cuda_reset();
  attention(q, k, k, /*causal=*/true);
  CHECK(attention_backend_in_use() == kEfficient);
  CHECK(dry_cuda::num_kernels("fmha_cutlassF") == 1);
  use_attention_backend(kFlash);
}

}  // namespace
}  // namespace rematch
