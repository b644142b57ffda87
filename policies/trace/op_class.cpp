#include "policies/trace/op_class.h"

#include <unordered_map>

namespace rematch {
namespace {

// A class and the dispatcher names of its ops, separated by spaces. A name that ends in `_` needs
// no entry if the name without `_` has an entry.
struct ClassRow {
  OpClass op_class;
  std::string_view names;
};

constexpr ClassRow kRows[] = {
    // Convolutions stay kOther, because reports document that `matmul` counts mm, addmm, bmm and
    // grouped mm.
    {OpClass::kMatmul,
     "aten::mm aten::addmm aten::bmm aten::baddbmm aten::addbmm aten::mv aten::addmv aten::dot "
     "aten::vdot aten::matmul aten::linear aten::linear_backward aten::_addmm_activation "
     "aten::_grouped_mm aten::_scaled_mm aten::_scaled_mm_v2 aten::_scaled_grouped_mm "
     "aten::_scaled_grouped_mm_v2 aten::_int_mm "
     "aten::_foreach_mm "
     "aten::matmul_backward aten::mkldnn_linear aten::mkldnn_linear_backward "
     "aten::mkldnn_linear_backward_input aten::mkldnn_linear_backward_weights "
     "mkldnn::_linear_pointwise mkl::_mkl_linear "
     "rematch::grouped_mm rematch::grouped_mm_backward"},
    {OpClass::kAttentionForward,
     "rematch::attention rematch::masked_attention rematch::chunked_attention "
     "rematch::ring_attention rematch::ring_attention_step "
     "aten::_scaled_dot_product_flash_attention aten::_scaled_dot_product_flash_attention_for_cpu "
     "aten::_scaled_dot_product_efficient_attention aten::_scaled_dot_product_cudnn_attention "
     "aten::_scaled_dot_product_attention_math aten::_scaled_dot_product_attention_math_for_mps "
     "aten::_scaled_dot_product_fused_attention_overrideable aten::scaled_dot_product_attention "
     "aten::_flash_attention_forward aten::_efficient_attention_forward "
     "aten::_flash_attention_forward_no_dropout_inplace "
     "aten::_cudnn_attention_forward aten::_cudnn_attention_forward_no_dropout_inplace "
     "aten::_triton_scaled_dot_attention "
     "aten::_native_multi_head_attention aten::_triton_multi_head_attention "
     "flash_attn::_flash_attn_forward flash_attn::_flash_attn_varlen_forward flash_attn_3::fwd "
     "flash_attn_3::_flash_attn_forward "
     "torch_attn::_varlen_attn torch_attn::_varlen_attn_out higher_order::flex_attention "
     "fastvideo::_flash_attn_default_forward fastvideo::_flash_attn_cute_forward "
     "fastvideo::_flash_attn_cute_varlen_forward fastvideo::_flash_attn_cute_fp4_forward "
     "fastvideo::_flash_attn_no_pad_forward fastvideo::_flash_attn_varlen_qk_no_pad_forward "
     "fastvideo_kernel::block_sparse_attn_triton fastvideo_kernel::block_sparse_attn_sm90 "
     "fastvideo_kernel::block_sparse_attn_sm100a "
     "xformers::efficient_attention_forward_cutlass xformers_flash::flash_fwd "
     "xformers_flash3::flash_fwd"},
    {OpClass::kAttentionBackward,
     "rematch::attention_backward rematch::masked_attention_backward "
     "rematch::chunked_attention_backward "
     "aten::_scaled_dot_product_flash_attention_backward "
     "aten::_scaled_dot_product_flash_attention_for_cpu_backward "
     "aten::_scaled_dot_product_efficient_attention_backward "
     "aten::_scaled_dot_product_cudnn_attention_backward "
     "aten::_scaled_dot_product_fused_attention_overrideable_backward "
     "aten::_flash_attention_backward aten::_efficient_attention_backward "
     "aten::_cudnn_attention_backward "
     "flash_attn::_flash_attn_backward flash_attn::_flash_attn_varlen_backward flash_attn_3::bwd "
     "flash_attn_3::_flash_attn_backward "
     "torch_attn::_varlen_attn_backward higher_order::flex_attention_backward "
     "fastvideo::_flash_attn_default_backward fastvideo::_flash_attn_cute_backward "
     "fastvideo::_flash_attn_cute_varlen_backward fastvideo::_flash_attn_cute_fp4_backward "
     "fastvideo::_flash_attn_no_pad_backward fastvideo::_flash_attn_varlen_qk_no_pad_backward "
     "fastvideo_kernel::block_sparse_attn_backward_triton "
     "fastvideo_kernel::block_sparse_attn_backward_sm90 "
     "fastvideo_kernel::block_sparse_attn_backward_sm100a "
     "xformers::efficient_attention_backward_cutlass xformers_flash::flash_bwd "
     "xformers_flash3::flash_bwd"},
    {OpClass::kNorm,
     "rematch::rms_norm rematch::rms_norm_backward rematch::add_rms_norm "
     "rematch::add_rms_norm_backward rematch::layer_norm rematch::layer_norm_backward "
     "rematch::rms_norm_rope rematch::rms_norm_rope_backward "
     "aten::native_layer_norm aten::native_layer_norm_backward aten::layer_norm "
     "aten::rms_norm aten::_fused_rms_norm aten::_fused_rms_norm_backward "
     "aten::native_group_norm aten::native_group_norm_backward aten::native_batch_norm "
     "aten::native_batch_norm_backward aten::cudnn_batch_norm aten::cudnn_batch_norm_backward "
     "aten::_native_batch_norm_legit aten::_weight_norm_interface "
     "aten::_weight_norm_interface_backward"},
    {OpClass::kElementwise,
     "aten::add aten::sub aten::rsub aten::mul aten::div aten::true_divide aten::floor_divide "
     "aten::remainder aten::fmod aten::neg aten::abs aten::sign aten::sgn aten::square aten::sqrt "
     "aten::rsqrt aten::reciprocal aten::pow aten::exp aten::exp2 aten::expm1 aten::log aten::log2 "
     "aten::log10 aten::log1p aten::sin aten::cos aten::tan aten::tanh aten::sinh aten::cosh "
     "aten::asin aten::acos aten::atan aten::atan2 aten::erf aten::erfc aten::erfinv "
     "aten::sigmoid aten::logit aten::silu aten::gelu aten::relu aten::relu6 aten::elu aten::celu "
     "aten::selu aten::mish aten::leaky_relu aten::prelu aten::_prelu_kernel aten::softplus "
     "aten::hardtanh aten::hardswish aten::hardsigmoid aten::log_sigmoid_forward aten::glu "
     "aten::threshold aten::floor aten::ceil aten::round aten::trunc aten::frac aten::clamp "
     "aten::clamp_min aten::clamp_max aten::maximum aten::minimum aten::fmax aten::fmin "
     "aten::lerp aten::addcmul aten::addcdiv aten::where aten::masked_fill aten::eq aten::ne "
     "aten::lt aten::le aten::gt aten::ge aten::logical_and aten::logical_or aten::logical_xor "
     "aten::logical_not aten::bitwise_and aten::bitwise_or aten::bitwise_xor aten::bitwise_not "
     "aten::bitwise_left_shift aten::bitwise_right_shift aten::isnan aten::isinf aten::isfinite "
     "aten::nan_to_num aten::hypot aten::polar aten::complex aten::copysign aten::heaviside "
     "aten::logaddexp aten::signbit aten::asinh aten::acosh aten::atanh aten::angle aten::addr "
     "aten::isin aten::xlogy aten::sinc aten::tril aten::triu aten::conj_physical "
     "aten::_conj_physical "
     "aten::silu_backward aten::gelu_backward aten::threshold_backward aten::sigmoid_backward "
     "aten::tanh_backward aten::elu_backward aten::leaky_relu_backward aten::mish_backward "
     "aten::softplus_backward aten::hardtanh_backward aten::hardswish_backward "
     "aten::hardsigmoid_backward aten::log_sigmoid_backward aten::glu_backward "
     "aten::_prelu_kernel_backward aten::native_dropout_backward "
     "rematch::silu_mul rematch::silu_mul_backward rematch::packed_silu_mul "
     "rematch::packed_silu_mul_backward rematch::rope rematch::rope_backward "
     "rematch::modulate rematch::modulate_backward rematch::bias_gelu "
     "rematch::bias_gelu_backward rematch::gated_add "
     "rematch::gated_add_backward"},
    {OpClass::kReduction,
     "aten::sum aten::mean aten::prod aten::var aten::std aten::var_mean aten::std_mean aten::amax "
     "aten::amin aten::aminmax aten::max aten::min aten::argmax aten::argmin aten::all aten::any "
     "aten::norm aten::linalg_vector_norm aten::logsumexp aten::cumsum aten::cumprod aten::nansum "
     "aten::cummax aten::cummin aten::_cummax_helper aten::_cummin_helper aten::logcumsumexp "
     "aten::_logcumsumexp aten::median aten::kthvalue aten::mode aten::renorm aten::kl_div "
     "aten::count_nonzero aten::softmax aten::log_softmax aten::_softmax "
     "aten::_softmax_backward_data aten::_log_softmax aten::_log_softmax_backward_data "
     "aten::_safe_softmax aten::nll_loss_forward aten::nll_loss_backward aten::nll_loss2d_forward "
     "aten::nll_loss2d_backward aten::mse_loss aten::mse_loss_backward aten::l1_loss "
     "aten::smooth_l1_loss aten::smooth_l1_loss_backward aten::huber_loss "
     "aten::huber_loss_backward aten::binary_cross_entropy aten::binary_cross_entropy_backward "
     "aten::binary_cross_entropy_with_logits aten::cross_entropy_loss "
     "rematch::linear_cross_entropy rematch::linear_cross_entropy_backward "
     "rematch::linear_cross_entropy_with_logits "
     "rematch::linear_cross_entropy_with_logits_backward aten::topk aten::sort "
     "aten::bincount aten::histc aten::value_selecting_reduction_backward aten::unfold_backward "
     "aten::equal aten::dist aten::linalg_norm"},
    {OpClass::kCopy,
     "aten::clone aten::copy aten::_to_copy aten::contiguous aten::cat aten::stack aten::repeat "
     "aten::flip aten::roll aten::constant_pad_nd aten::pad aten::fill aten::zero aten::zeros "
     "aten::zeros_like aten::ones aten::ones_like aten::full aten::full_like aten::new_zeros "
     "aten::new_ones aten::new_full aten::scalar_tensor aten::arange aten::linspace aten::eye "
     "aten::empty aten::empty_like aten::empty_strided aten::empty_permuted aten::new_empty "
     "aten::new_empty_strided aten::lift_fresh_copy aten::_local_scalar_dense aten::resize "
     "aten::set aten::split_with_sizes_copy aten::slice_backward aten::select_backward "
     "aten::diagonal_backward aten::slice_scatter aten::select_scatter aten::diagonal_scatter "
     "aten::as_strided_scatter aten::_chunk_cat aten::_pin_memory aten::repeat_interleave "
     "aten::tril_indices aten::triu_indices "
     "aten::one_hot aten::view_copy aten::expand_copy aten::permute_copy aten::transpose_copy "
     "fsdp::all_gather_copy_in fsdp::split_with_sizes_copy fsdp::chunk_cat fsdp::copy_"},
    {OpClass::kView,
     "aten::view aten::_unsafe_view aten::reshape aten::_reshape_alias aten::view_as_real "
     "aten::view_as_complex aten::view_as aten::t aten::transpose aten::permute aten::expand "
     "aten::expand_as aten::squeeze aten::unsqueeze aten::select aten::slice aten::narrow "
     "aten::split aten::split_with_sizes aten::chunk aten::unbind aten::unfold aten::diagonal "
     "aten::detach aten::alias aten::as_strided aten::flatten aten::unflatten aten::movedim "
     "aten::swapaxes aten::real aten::imag aten::_conj aten::_neg_view aten::lift_fresh "
     "aten::broadcast_to aten::numpy_T aten::mT "
     "aten::unsafe_split aten::unsafe_chunk aten::unsafe_split_with_sizes"},
    {OpClass::kEmbedding,
     "aten::embedding aten::embedding_backward aten::embedding_dense_backward aten::_embedding_bag "
     "aten::_embedding_bag_backward aten::gather aten::scatter aten::scatter_add "
     "aten::scatter_reduce aten::index aten::index_put aten::_index_put_impl aten::_unsafe_index "
     "aten::_unsafe_index_put aten::index_select aten::index_add aten::index_copy aten::index_fill "
     "aten::masked_select aten::masked_scatter aten::nonzero aten::take aten::put "
     "aten::index_reduce aten::_unsafe_masked_index aten::_unsafe_masked_index_put_accumulate "
     "aten::index_select_backward aten::masked_select_backward "
     "aten::searchsorted aten::bucketize aten::_unique2"},
    {OpClass::kRandom,
     "aten::rand aten::rand_like aten::randn aten::randn_like aten::randint aten::randint_like "
     "aten::randperm aten::bernoulli aten::uniform aten::normal aten::normal_functional "
     "aten::random aten::exponential aten::multinomial aten::native_dropout aten::dropout "
     "aten::_fused_dropout aten::log_normal aten::geometric aten::cauchy aten::rrelu_with_noise"},
    {OpClass::kCollective,
     "_c10d_functional::all_reduce _c10d_functional::all_reduce_coalesced "
     "_c10d_functional::all_gather_into_tensor _c10d_functional::all_gather_into_tensor_out "
     "_c10d_functional::all_gather_into_tensor_coalesced _c10d_functional::reduce_scatter_tensor "
     "_c10d_functional::reduce_scatter_tensor_out "
     "_c10d_functional::reduce_scatter_tensor_coalesced _c10d_functional::all_to_all_single "
     "_c10d_functional::broadcast _c10d_functional::wait_tensor "
     "_c10d_functional_autograd::all_to_all_single "
     "_c10d_functional_autograd::all_gather_into_tensor "
     "_c10d_functional_autograd::reduce_scatter_tensor "
     "c10d::allreduce_ c10d::allreduce_coalesced_ c10d::allgather_ c10d::_allgather_base_ "
     "c10d::allgather_coalesced_ c10d::allgather_into_tensor_coalesced_ c10d::reduce_scatter_ "
     "c10d::_reduce_scatter_base_ c10d::reduce_scatter_tensor_coalesced_ c10d::reduce_ "
     "c10d::gather_ c10d::scatter_ c10d::alltoall_ c10d::alltoall_base_ c10d::broadcast_ "
     "c10d::barrier c10d::send c10d::recv_ c10d::recv_any_source_ "
     "deepep::dispatch deepep::combine hybridep::dispatch hybridep::combine"},
    // Multi-tensor ops serve optimizers and gradient clipping, so the whole _foreach_ family
    // belongs to this class, except _foreach_mm of LibTorch 2.13. op_class_of finds the family by
    // its prefix.
    {OpClass::kOptimizer,
     "aten::_fused_adamw aten::_fused_adam aten::_fused_sgd aten::_fused_adagrad "
     "rematch::adamw aten::_amp_foreach_non_finite_check_and_unscale aten::_amp_update_scale"},
};

constexpr std::string_view kForeachPrefix = "aten::_foreach_";

using Table = std::unordered_map<std::string_view, OpClass>;

Table build_table() {
  Table table;
  for (const ClassRow& row : kRows) {
    std::string_view rest = row.names;
    while (!rest.empty()) {
      const std::size_t end = rest.find(' ');
      if (end != 0) table.emplace(rest.substr(0, end), row.op_class);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  return table;
}

const Table& table() {
  static const Table kTable = build_table();
  return kTable;
}

}  // namespace

bool is_replay_only(std::string_view name) { return name.starts_with("rematch::restore_"); }

bool is_empty_factory(std::string_view name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
}

OpClass op_class_of(std::string_view name) {
  const std::string_view base = name.substr(0, name.find('.'));
  if (const auto found = table().find(base); found != table().end()) return found->second;
  if (base.starts_with(kForeachPrefix)) return OpClass::kOptimizer;
  if (base.ends_with('_')) {
    const auto found = table().find(base.substr(0, base.size() - 1));
    if (found != table().end()) return found->second;
  }
  return OpClass::kOther;
}

}  // namespace rematch
