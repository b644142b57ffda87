// Which kernel the attention ops run. One choice for the process: forward, recompute and backward
// must stand alike.
#pragma once

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

}  // namespace rematch
