#include "policies/trace/op_class.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rematch {
namespace {

struct Row {
  std::string_view name;
  OpClass op_class;
};

TEST_CASE("op names map to their classes") {
  const Row rows[] = {
      {"aten::mm", OpClass::kMatmul},
      {"aten::addmm", OpClass::kMatmul},
      {"aten::bmm", OpClass::kMatmul},
      {"aten::_grouped_mm", OpClass::kMatmul},
      {"aten::_foreach_mm", OpClass::kMatmul},
      {"rematch::attention", OpClass::kAttentionForward},
      {"rematch::attention_backward", OpClass::kAttentionBackward},
      {"aten::_flash_attention_forward", OpClass::kAttentionForward},
      {"aten::_flash_attention_forward_no_dropout_inplace", OpClass::kAttentionForward},
      {"aten::_cudnn_attention_forward_no_dropout_inplace", OpClass::kAttentionForward},
      {"fastvideo_kernel::block_sparse_attn_sm90", OpClass::kAttentionForward},
      {"fastvideo_kernel::block_sparse_attn_backward_sm90", OpClass::kAttentionBackward},
      {"flash_attn_3::fwd", OpClass::kAttentionForward},
      {"flash_attn_3::bwd", OpClass::kAttentionBackward},
      {"torch_attn::_varlen_attn", OpClass::kAttentionForward},
      {"aten::native_layer_norm_backward", OpClass::kNorm},
      {"aten::silu_backward", OpClass::kElementwise},
      {"aten::add_", OpClass::kElementwise},
      {"aten::add.Tensor", OpClass::kElementwise},
      {"aten::mul_.Tensor", OpClass::kElementwise},
      {"aten::mean.dim", OpClass::kReduction},
      {"aten::_log_softmax_backward_data", OpClass::kReduction},
      {"aten::_to_copy", OpClass::kCopy},
      {"aten::copy_", OpClass::kCopy},
      {"aten::_unsafe_view", OpClass::kView},
      {"aten::slice.Tensor", OpClass::kView},
      {"aten::embedding_dense_backward", OpClass::kEmbedding},
      {"aten::bernoulli_.float", OpClass::kRandom},
      {"_c10d_functional::wait_tensor", OpClass::kCollective},
      {"_c10d_functional::all_reduce_", OpClass::kCollective},
      {"c10d::alltoall_base_", OpClass::kCollective},
      {"aten::_fused_adamw_", OpClass::kOptimizer},
      {"aten::_foreach_add_.Scalar", OpClass::kOptimizer},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(op_class_of(row.name) == row.op_class);
  }
}

TEST_CASE("every fused attention op of a GPU or CPU has a forward and a backward") {
  for (const std::string name :
       {"aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_fused_attention_overrideable", "rematch::attention"}) {
    CAPTURE(name);
    CHECK(op_class_of(name) == OpClass::kAttentionForward);
    CHECK(op_class_of(name + "_backward") == OpClass::kAttentionBackward);
  }
}

// Attention ops and their backward ops, under the names that training systems and libraries
// register: FlashAttention 2 and 3 with CuTe and CUTLASS variants, SDPA by each backend,
// block-sparse and flexible attention.
constexpr std::pair<const char*, const char*> kAttentions[] = {
    {"rematch::attention", "rematch::attention_backward"},
    {"rematch::masked_attention", "rematch::masked_attention_backward"},
    {"aten::_scaled_dot_product_flash_attention",
     "aten::_scaled_dot_product_flash_attention_backward"},
    {"aten::_scaled_dot_product_efficient_attention",
     "aten::_scaled_dot_product_efficient_attention_backward"},
    {"aten::_scaled_dot_product_cudnn_attention",
     "aten::_scaled_dot_product_cudnn_attention_backward"},
    {"aten::_scaled_dot_product_flash_attention_for_cpu",
     "aten::_scaled_dot_product_flash_attention_for_cpu_backward"},
    {"aten::_scaled_dot_product_fused_attention_overrideable",
     "aten::_scaled_dot_product_fused_attention_overrideable_backward"},
    {"aten::_flash_attention_forward", "aten::_flash_attention_backward"},
    {"aten::_efficient_attention_forward", "aten::_efficient_attention_backward"},
    {"aten::_cudnn_attention_forward", "aten::_cudnn_attention_backward"},
    {"flash_attn::_flash_attn_forward", "flash_attn::_flash_attn_backward"},
    {"flash_attn::_flash_attn_varlen_forward", "flash_attn::_flash_attn_varlen_backward"},
    {"flash_attn_3::fwd", "flash_attn_3::bwd"},
    {"flash_attn_3::_flash_attn_forward", "flash_attn_3::_flash_attn_backward"},
    {"fastvideo::_flash_attn_default_forward", "fastvideo::_flash_attn_default_backward"},
    {"fastvideo::_flash_attn_cute_forward", "fastvideo::_flash_attn_cute_backward"},
    {"fastvideo::_flash_attn_cute_varlen_forward", "fastvideo::_flash_attn_cute_varlen_backward"},
    {"fastvideo::_flash_attn_cute_fp4_forward", "fastvideo::_flash_attn_cute_fp4_backward"},
    {"fastvideo::_flash_attn_no_pad_forward", "fastvideo::_flash_attn_no_pad_backward"},
    {"fastvideo::_flash_attn_varlen_qk_no_pad_forward",
     "fastvideo::_flash_attn_varlen_qk_no_pad_backward"},
    {"fastvideo_kernel::block_sparse_attn_triton",
     "fastvideo_kernel::block_sparse_attn_backward_triton"},
    {"fastvideo_kernel::block_sparse_attn_sm90",
     "fastvideo_kernel::block_sparse_attn_backward_sm90"},
    {"fastvideo_kernel::block_sparse_attn_sm100a",
     "fastvideo_kernel::block_sparse_attn_backward_sm100a"},
    {"torch_attn::_varlen_attn", "torch_attn::_varlen_attn_backward"},
    {"higher_order::flex_attention", "higher_order::flex_attention_backward"},
    {"xformers::efficient_attention_forward_cutlass",
     "xformers::efficient_attention_backward_cutlass"},
    {"xformers_flash::flash_fwd", "xformers_flash::flash_bwd"},
    {"xformers_flash3::flash_fwd", "xformers_flash3::flash_bwd"},
};

TEST_CASE(
    "the attention ops of all systems share one class, and their backward ops share another "
    "class") {
  for (const auto& [forward, backward] : kAttentions) {
    CAPTURE(forward, backward);
    CHECK(op_class_of(forward) == OpClass::kAttentionForward);
    CHECK(op_class_of(backward) == OpClass::kAttentionBackward);
  }
  // The math backend and whole multi-head modules have no backward op of their own.
  for (const char* forward :
       {"aten::_scaled_dot_product_attention_math", "aten::scaled_dot_product_attention",
        "aten::_native_multi_head_attention", "aten::_triton_scaled_dot_attention"}) {
    CHECK(op_class_of(forward) == OpClass::kAttentionForward);
  }
}

TEST_CASE("projections, feed-forwards and ops around attention are not in the attention class") {
  for (const char* name : {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear",
                           "aten::_scaled_mm", "aten::_grouped_mm", "aten::_scaled_grouped_mm"}) {
    CAPTURE(name);
    CHECK(op_class_of(name) == OpClass::kMatmul);
  }
  for (const char* name :
       {"aten::_fused_sdp_choice", "aten::_transform_bias_rescale_qkv", "aten::_softmax",
        "aten::gelu", "aten::silu", "flash_attn::rotary", "_c10d_functional::all_to_all_single",
        "aten::_flash_attention", "flash_attn_3::get_scheduler_metadata"}) {
    CAPTURE(name);
    const OpClass op_class = op_class_of(name);
    CHECK(op_class != OpClass::kAttentionForward);
    CHECK(op_class != OpClass::kAttentionBackward);
    CHECK(op_class != OpClass::kMatmul);
  }
}

// Returns whether FastVideo would treat an op of this name as attention. FastVideo searches the
// name for certain words.
bool fastvideo_takes_for_attention(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (has("backward")) return false;
  return (has("flash_attn") && (has("forward") || has("fwd"))) || has("_scaled_dot_product");
}

TEST_CASE(
    "the attention class contains the ops that FastVideo's rule finds, and ops that the rule "
    "misses") {
  std::vector<std::string> missed;
  for (const auto& [forward, backward] : kAttentions) {
    if (!fastvideo_takes_for_attention(forward)) missed.push_back(forward);
    CHECK_FALSE(fastvideo_takes_for_attention(backward));
  }
  for (const char* name : {"aten::_flash_attention_forward", "torch_attn::_varlen_attn",
                           "fastvideo_kernel::block_sparse_attn_sm90"}) {
    CHECK(std::find(missed.begin(), missed.end(), name) != missed.end());
  }
}

TEST_CASE("any unknown name is in the class 'other'") {
  for (const std::string_view name : {"", "mm", "aten::", "aten::_", "mylib::attention",
                                      "aten::mmm", "aten::convolution", "aten::_foreach"}) {
    CAPTURE(name);
    CHECK(op_class_of(name) == OpClass::kOther);
  }
}

TEST_CASE("class names convert to classes and back") {
  for (const OpClass op_class : kAll<OpClass>) {
    CHECK(from_string<OpClass>(to_string(op_class)) == op_class);
  }
  CHECK_FALSE(from_string<OpClass>("attention").has_value());
}

}  // namespace
}  // namespace rematch
