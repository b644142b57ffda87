// The kind of work a CUDA kernel does, from its name: what counts and times per class speak of. The
// phase is never in the name (a recomputed kernel is called as the original), so it is not here.
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
  kAttentionAuxiliary,  // the small kernels around attention: sums of splits, dot products, casts
  kMatmul,
  kNorm,
  kSoftmaxLoss,
  kRandom,
  kForeach,  // multi-tensor kernels of optimizers and gradient clipping
  kSort,     // sorts, scans, histograms, the largest k: what a router of experts runs
  kIndex,    // embeddings, gathers, scatters
  kReduction,
  kElementwise,  // and copies that a kernel makes
  kMemory,       // memcpy and memset: known by their record, not by a name
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

// `name` is demangled or not. Ordered rules, the first that fits: FlashAttention's kernels carry
// cutlass in their names, so attention comes before matmul.
KernelClass kernel_class_of(std::string_view name);

// A kernel's symbol as its source spells it, without the return type; as it is where it is no C++
// symbol.
std::string demangled(const std::string& symbol);

// A demangled name without template arguments and parameters: "pytorch_flash::flash_fwd_kernel".
std::string short_name(const std::string& name);

}  // namespace rematch
