#include "policies/trace/op_class.h"

#include <catch2/catch.hpp>
#include <string>

namespace rematch {
namespace {

struct Row {
  std::string_view name;
  OpClass op_class;
};

TEST_CASE("op names map to their class") {
  const Row rows[] = {
      {"aten::mm", OpClass::kMatmul},
      {"aten::addmm", OpClass::kMatmul},
      {"aten::bmm", OpClass::kMatmul},
      {"aten::_grouped_mm", OpClass::kMatmul},
      {"rematch::attention", OpClass::kAttentionForward},
      {"rematch::attention_backward", OpClass::kAttentionBackward},
      {"aten::_flash_attention_forward", OpClass::kAttentionForward},
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

TEST_CASE("every fused attention op that a GPU or CPU dispatches has a forward and a backward") {
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

TEST_CASE("a name that no table has is other, however it looks") {
  for (const std::string_view name : {"", "mm", "aten::", "aten::_", "mylib::attention",
                                      "aten::mmm", "aten::convolution", "aten::_foreach"}) {
    CAPTURE(name);
    CHECK(op_class_of(name) == OpClass::kOther);
  }
}

TEST_CASE("class names read back") {
  for (int index = 0; index < kNumOpClasses; ++index) {
    const auto op_class = static_cast<OpClass>(index);
    CHECK(op_class_from_string(to_string(op_class)) == op_class);
  }
  CHECK_FALSE(op_class_from_string("attention").has_value());
}

}  // namespace
}  // namespace rematch
