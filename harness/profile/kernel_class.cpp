#include "harness/profile/kernel_class.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/trace/op_class.h"

namespace rematch {
namespace {

// A pattern matches anywhere in the name, or only at its start if the pattern begins with '^'. '*'
// matches any characters, and '#' matches one or more digits.
struct Rule {
  KernelClass kernel_class;
  std::vector<std::string_view> patterns;
};

// Patterns for the kernels of PyTorch, cuBLAS, cuDNN, FlashAttention and NCCL in CUDA 12 and 13.
// Patterns also match template arguments, because nvcc's lambdas do not demangle. nvjet is cuBLAS
// since 12.8. triton_tem_ kernels are nearly always matmuls. jagged_ kernels are elementwise.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {KernelClass::kCollective,
       {"^ncclDevKernel_", "^ncclSymkDevKernel_", "^ncclKernel_", "cross_device_reduce",
        "multimem_", "one_shot_all_reduce", "two_shot_all_reduce"}},
      {KernelClass::kAttentionAuxiliary,
       {"flash_fwd_splitkv_combine", "FlashAttnFwdCombine", "prepare_varlen_num_blocks",
        "flash_bwd_dot_do_o", "flash_bwd_convert_d", "FlashAttnBwdPreprocess",
        "FlashAttnBwdPostprocess", "FlashAttentionBackwardPreprocess",
        "FlashAttentionBackwardPostprocess", "compute_dot_do_o", "convert_dq_to_16bits",
        "convert_dKV"}},
      {KernelClass::kAttentionForward,
       {"flash_fwd_kernel", "flash_fwd_splitkv", "FlashAttnFwdSm", "FlashAttentionForwardSm",
        "sdpa_sm#_flash_fprop", "sdpa_sm#_*_fprop", "fmha_cutlassF_", "fmha_fwd_",
        "attention_kernel_batched_impl"}},
      {KernelClass::kAttentionBackward,
       {"flash_bwd_dq_dk_dv_loop", "FlashAttnBwdSm", "FlashAttentionBackwardSm",
        "sdpa_sm#_flash_bprop", "sdpa_sm#_*_bprop", "fmha_cutlassB_", "fmha_bwd_",
        "attention_kernel_backward_batched_impl"}},
      {KernelClass::kElementwise, {"jagged_"}},
      {KernelClass::kMatmul,
       {"^nvjet_", "sm#_xmma_gemm_", "ampere_*gemm", "turing_*gemm", "volta_*gemm",
        "cutlass_#_tensorop", "cutlass_#_wmma", "cutlass_#_simt", "cutlass3x_sm#", "gemv",
        "splitKreduce_kernel", "GemmUniversal", "triton_tem_", "gemm"}},
      {KernelClass::kNorm,
       {"layer_norm", "rms_norm", "rmsnorm", "RMSNorm", "LayerNorm", "GammaBeta", "batch_norm",
        "weight_norm", "RowwiseMoments", "ComputeInternalGradients", "FusedParamsCUDAKernel"}},
      {KernelClass::kSoftmaxLoss, {"softmax_warp", "SoftMax", "nll_loss", "cross_entropy"}},
      {KernelClass::kRandom,
       {"distribution_elementwise_grid_stride", "distribution_binary_elementwise", "fused_dropout",
        "kernelPointwiseApply", "sampleMultinomial", "rrelu_with_noise"}},
      {KernelClass::kForeach,
       {"multi_tensor_apply_kernel", "rematch_adamw_update", "lpnorm_cleanup", "lpmax_cleanup"}},
      {KernelClass::kSort,
       {"RadixSort",     "MergeSort",           "DeviceScan",        "DeviceSelect",
        "DeviceCompact", "DeviceUnique",        "SortKVInPlace",     "sort_postprocess",
        "Histogram",     "tensor_kernel_scan_", "gatherTopK",        "computeBlock",
        "searchsorted",  "calc_block_sums",     "final_scan_kernel", "gatherKthValue",
        "gatherMedian",  "adjacent_difference", "UniqueAgent",       "transform_vals"}},
      {KernelClass::kIndex,
       {"embedding", "EmbeddingBag", "index_", "indexing_", "indexSelect", "indexFunc", "gather",
        "scatter", "compute_grad_weight", "krn_partial", "partial_segments",
        "compute_cuda_kernel"}},
      {KernelClass::kReduction,
       {"reduce_kernel", "DeviceReduce", "DeviceSegmentedReduce", "triton_red_", "triton_per_",
        "rematch_add_partial_sums"}},
      {KernelClass::kElementwise,
       {"elementwise_kernel", "direct_copy", "CatArrayBatchedCopy", "FillFunctor", "triton_poi_",
        "triu_tril_kernel", "roll_cuda_kernel", "chunk_cat", "glu_backward_kernel", "static_kernel",
        "transform_kernel"}},
  };
  return table;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Returns whether `text` begins with a match of `pattern`.
bool begins_with(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return true;
  if (pattern.front() == '*') {
    for (std::size_t skipped = 0; skipped <= text.size(); ++skipped) {
      if (begins_with(text.substr(skipped), pattern.substr(1))) return true;
    }
    return false;
  }
  if (pattern.front() == '#') {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    return digits > 0 && begins_with(text.substr(digits), pattern.substr(1));
  }
  return !text.empty() && text.front() == pattern.front() &&
         begins_with(text.substr(1), pattern.substr(1));
}

bool fits(std::string_view name, std::string_view pattern) {
  if (pattern.front() == '^') return begins_with(name, pattern.substr(1));
  for (std::size_t start = 0; start < name.size(); ++start) {
    if (begins_with(name.substr(start), pattern)) return true;
  }
  return false;
}

// A kernel named rematch_NAME_... gets the class of op rematch::NAME. A new op therefore needs a
// class in one place only.
std::optional<KernelClass> class_of_own_kernel(std::string_view name) {
  constexpr std::string_view kStart = "rematch_";
  const std::size_t start = name.find(kStart);
  if (start == std::string_view::npos) return std::nullopt;
  std::string_view words = name.substr(start + kStart.size());
  words = words.substr(0, words.find_first_of("<( "));
  for (; !words.empty(); words = words.substr(0, words.find_last_of('_'))) {
    switch (op_class_of("rematch::" + std::string(words))) {
      case OpClass::kElementwise:
        return KernelClass::kElementwise;
      case OpClass::kNorm:
        return KernelClass::kNorm;
      default:
        break;
    }
    if (words.find('_') == std::string_view::npos) break;
  }
  return std::nullopt;
}

}  // namespace

KernelClass kernel_class_of(std::string_view name) {
  constexpr std::string_view kReturnType = "void ";
  if (name.starts_with(kReturnType)) name.remove_prefix(kReturnType.size());
  if (const auto own = class_of_own_kernel(name)) return *own;
  for (const Rule& rule : rules()) {
    const bool found =
        std::any_of(rule.patterns.begin(), rule.patterns.end(),
                    [name](std::string_view pattern) { return fits(name, pattern); });
    if (found) return rule.kernel_class;
  }
  return KernelClass::kUnknown;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || text == nullptr) return symbol;
  constexpr std::string_view kReturnType = "void ";
  std::string_view name = text.get();
  if (name.starts_with(kReturnType)) name.remove_prefix(kReturnType.size());
  return std::string(name);
}

std::string short_name(const std::string& name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::string text;
  std::string open;  // the brackets that are open, the innermost last
  for (std::size_t index = 0; index < name.size(); ++index) {
    const char letter = name[index];
    if (open.empty() && std::string_view(name).substr(index).starts_with(kUnnamed)) {
      text += kUnnamed;
      index += kUnnamed.size() - 1;
      continue;
    }
    if (open.empty() && letter == '(') break;
    if (letter == '<' || letter == '(') open += letter;
    if (open.empty()) {
      text += letter;
    } else if ((letter == '>' && open.back() == '<') || (letter == ')' && open.back() == '(')) {
      open.pop_back();
    }
  }
  return text;
}

}  // namespace rematch
