#include "kernels/attention/backend.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>

#include <array>
#include <atomic>
#include <utility>

namespace rematch {
namespace {

constexpr std::array<std::pair<AttentionBackend, std::string_view>, 4> kNames = {
    {{AttentionBackend::kFlash, "flash"},
     {AttentionBackend::kCudnn, "cudnn"},
     {AttentionBackend::kEfficient, "efficient"},
     {AttentionBackend::kMath, "math"}}};

// The choice applies to the whole process, like LibTorch's own flags for attention backends.
std::atomic<bool> libtorch_is_to_choose = false;
std::atomic<bool> cudnn_is_usable = true;

}  // namespace

std::string_view to_string(AttentionBackend backend) {
  return kNames.at(static_cast<std::size_t>(backend)).second;
}

std::optional<AttentionBackend> attention_backend_from_string(std::string_view name) {
  for (const auto& [backend, known] : kNames) {
    if (known == name) return backend;
  }
  return std::nullopt;
}

std::vector<AttentionBackend> attention_backends(c10::DeviceType device, c10::ScalarType dtype) {
  using enum AttentionBackend;
  if (device != c10::DeviceType::CUDA) return {kFlash, kMath};
  if (dtype == c10::kBFloat16) return {kFlash, kCudnn, kEfficient, kMath};
  if (dtype == c10::kFloat) return {kEfficient, kMath};
  return {kMath};
}

void use_attention_backend(AttentionBackend backend) {
  libtorch_is_to_choose = false;
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(backend == AttentionBackend::kFlash);
  context.setSDPUseCuDNN(backend == AttentionBackend::kCudnn);
  context.setSDPUseMemEfficient(backend != AttentionBackend::kMath);
  context.setSDPUseMath(true);
}

AttentionBackend attention_backend_in_use() {
  const at::Context& context = at::globalContext();
  if (context.userEnabledFlashSDP()) return AttentionBackend::kFlash;
  if (context.userEnabledCuDNNSDP()) return AttentionBackend::kCudnn;
  return context.userEnabledMemEfficientSDP() ? AttentionBackend::kEfficient
                                              : AttentionBackend::kMath;
}

void let_libtorch_choose_attention(bool has_cudnn) {
  libtorch_is_to_choose = true;
  cudnn_is_usable = has_cudnn;
}

AttentionBackend libtorch_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    bool causal) {
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(true);
  context.setSDPUseCuDNN(cudnn_is_usable);
  context.setSDPUseMemEfficient(true);
  context.setSDPUseMath(true);
  const std::int64_t choice = at::_fused_sdp_choice(
      q, k, v, /*attn_mask=*/std::nullopt, /*dropout_p=*/0.0, causal, /*scale=*/std::nullopt,
      /*enable_gqa=*/q.size(1) != k.size(1));
  switch (static_cast<at::SDPBackend>(choice)) {
    case at::SDPBackend::flash_attention:
      return AttentionBackend::kFlash;
    case at::SDPBackend::cudnn_attention:
      return AttentionBackend::kCudnn;
    case at::SDPBackend::efficient_attention:
      return AttentionBackend::kEfficient;
    default:
      return AttentionBackend::kMath;
  }
}

void choose_attention_for(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          bool causal) {
  if (!libtorch_is_to_choose) return;
  AttentionBackend choice = libtorch_attention(q, k, v, causal);
  // If query heads share key heads, LibTorch may compose attention from float32 matmuls.
  // rematch::attention runs a fused kernel instead, which repeats the key heads if necessary.
  if (choice == AttentionBackend::kMath)
    choice = attention_backends(q.device().type(), q.scalar_type()).front();
  use_attention_backend(choice);
}

}  // namespace rematch
