// The kind of work that a CUDA kernel does, found from its name. The name does not show the phase:
// a recomputed kernel has the same name as the original.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "policies/base/words.h"

namespace rematch {

enum class KernelClass : std::uint8_t {
  kCollective,
  kAttentionForward,
  kAttentionBackward,
  kAttentionAuxiliary,  // small kernels around attention: sums of splits, dot products, casts
  kMatmul,
  kNorm,
  kSoftmaxLoss,
  kRandom,
  kForeach,  // multi-tensor kernels of optimizers and gradient clipping
  kSort,     // sorts, scans, histograms and top-k, as in a router of experts
  kIndex,    // embeddings, gathers, scatters
  kReduction,
  kElementwise,  // elementwise kernels, including copies by a kernel
  kMemory,       // memcpy and memset, identified by the type of their record
  kUnknown,
};

template <>
inline constexpr std::array<std::string_view, 15> kWords<KernelClass> = {"collective",
                                                                         "attention_forward",
                                                                         "attention_backward",
                                                                         "attention_auxiliary",
                                                                         "matmul",
                                                                         "norm",
                                                                         "softmax_loss",
                                                                         "random",
                                                                         "foreach",
                                                                         "sort",
                                                                         "index",
                                                                         "reduction",
                                                                         "elementwise",
                                                                         "memory",
                                                                         "unknown"};

// `name` may be mangled. Applies the first matching rule. The order matters: FlashAttention's
// kernels contain cutlass in their names, so attention comes before matmul.
KernelClass kernel_class_of(std::string_view name);

// Returns a kernel's name as its source spells it, without the return type. Returns the symbol
// unchanged if it is not a C++ symbol.
std::string demangled(const std::string& symbol);

// Returns a demangled name without template arguments and parameters, such as
// "pytorch_flash::flash_fwd_kernel".
std::string short_name(const std::string& name);

}  // namespace rematch
