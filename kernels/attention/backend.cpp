#include "kernels/attention/backend.h"

#include <ATen/Context.h>

#include <array>
#include <utility>

namespace rematch {
namespace {

constexpr std::array<std::pair<AttentionBackend, std::string_view>, 4> kNames = {
    {{AttentionBackend::kFlash, "flash"},
     {AttentionBackend::kCudnn, "cudnn"},
     {AttentionBackend::kEfficient, "efficient"},
     {AttentionBackend::kMath, "math"}}};

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
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(backend == AttentionBackend::kFlash);
  context.setSDPUseCuDNN(backend == AttentionBackend::kCudnn);
  context.setSDPUseMemEfficient(backend != AttentionBackend::kMath);
  context.setSDPUseMath(true);
}

}  // namespace rematch
