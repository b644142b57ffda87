// Selects the kernel that the attention ops run. The choice applies to the whole process, because
// forward, recompute and backward must use the same kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rematch {

enum class AttentionBackend : std::uint8_t { kFlash, kCudnn, kEfficient, kMath };

std::string_view to_string(AttentionBackend backend);
std::optional<AttentionBackend> attention_backend_from_string(std::string_view name);

// Returns the backends that support the dtype on the device, the default first. Kernels do not run
// on meta tensors, so for device meta returns the backends of the CPU.
std::vector<AttentionBackend> attention_backends(c10::DeviceType device, c10::ScalarType dtype);

// Selects a backend. On CUDA, masked attention supports only two kernels: the composed kernel for
// kMath, and the memory-efficient kernel for every other backend.
void use_attention_backend(AttentionBackend backend);

// Returns the backend in use: the backend that use_attention_backend() selected, or that LibTorch
// has chosen since then.
AttentionBackend attention_backend_in_use();

// Lets LibTorch choose the backend, but not cuDNN if `has_cudnn` is false. The first unmasked
// attention op on CUDA calls libtorch_attention(). This op and all later ops use the result.
void let_libtorch_choose_attention(bool has_cudnn = true);

// Returns the backend that LibTorch's scaled_dot_product_attention would run on these CUDA tensors
// if all backends were enabled. This is usually cuDNN on sm_90 and sm_100, and flash on other
// cards, but never cuDNN in deterministic mode. Leaves all backends enabled.
AttentionBackend libtorch_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    bool causal);

// Asks LibTorch for its choice if let_libtorch_choose_attention() was called and LibTorch has
// not chosen yet. Attention ops without a mask call this function before they run a CUDA kernel.
void choose_attention_for(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          bool causal);

}  // namespace rematch
