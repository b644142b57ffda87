// Which kernel the attention ops run. One choice for the process: forward, recompute and backward
// must stand alike.
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

// Those that take the dtype there, the one that is used unless told otherwise in front. On meta
// nothing runs, so they are the CPU's.
std::vector<AttentionBackend> attention_backends(c10::DeviceType device, c10::ScalarType dtype);

// Masked attention has no flash or cuDNN kernel on CUDA: there kMath means it too, and all others
// leave it to the memory-efficient one.
void use_attention_backend(AttentionBackend backend);

// The one that the last use_attention_backend() named, or that LibTorch chose since.
AttentionBackend attention_backend_in_use();

// Leaves the choice to LibTorch: the first attention op on CUDA asks libtorch_attention(), and it
// and all later ones take that.
void let_libtorch_choose_attention();

// The backend that LibTorch's scaled_dot_product_attention would run on these CUDA tensors if all
// were enabled: cuDNN on sm_90 and sm_100, else flash, where they take dtype and width; not cuDNN
// in deterministic mode. Leaves them all enabled.
AttentionBackend libtorch_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    bool causal);

// For the kernels: asks LibTorch if the choice was left to it and is not made yet.
void choose_attention_for(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          bool causal);

}  // namespace rematch
