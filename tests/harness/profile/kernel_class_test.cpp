#include "harness/profile/kernel_class.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

struct Row {
  const char* name;
  KernelClass expected;
};

// Kernel names of PyTorch 2.11 with CUDA 13 and of the libraries under it, as their sources spell
// them; not captured on a device.
TEST_CASE("kernel names fall into their class") {
  const std::vector<Row> rows = {
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, false, false, "
       "cutlass::bfloat16_t>, false, true>(pytorch_flash::Flash_fwd_params)",
       KernelClass::kAttentionForward},
      {"void pytorch_flash::flash_fwd_splitkv_combine_kernel<...>", KernelClass::kAttentionForward},
      {"cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<...>>>",
       KernelClass::kAttentionForward},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128",
       KernelClass::kAttentionForward},
      {"fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
       KernelClass::kAttentionForward},
      {"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>",
       KernelClass::kAttentionBackward},
      {"cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<...>>>",
       KernelClass::kAttentionBackward},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_bf16_knob_31",
       KernelClass::kAttentionBackward},
      {"fmha_cutlassB_bf16_aligned_64x64_k64_sm80", KernelClass::kAttentionBackward},
      {"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, ...>",
       KernelClass::kAttentionAuxiliary},
      {"void pytorch_flash::flash_bwd_convert_dq_kernel<...>", KernelClass::kAttentionAuxiliary},
      {"cutlass::device_kernel<flash::FlashAttnBwdPreprocess<...>>",
       KernelClass::kAttentionAuxiliary},
      {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", KernelClass::kMatmul},
      {"nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNN", KernelClass::kMatmul},
      {"sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", KernelClass::kMatmul},
      {"ampere_sgemm_128x64_tn", KernelClass::kMatmul},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x4_nn_align8>",
       KernelClass::kMatmul},
      {"cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32", KernelClass::kMatmul},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>", KernelClass::kMatmul},
      {"void gemv2T_kernel_val<int, int, float>", KernelClass::kMatmul},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
       KernelClass::kNorm},
      {"void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<...>",
       KernelClass::kNorm},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, true, false>",
       KernelClass::kSoftmaxLoss},
      {"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<...>",
       KernelClass::kSoftmaxLoss},
      {"void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<...>",
       KernelClass::kRandom},
      {"void at::native::(anonymous namespace)::fused_dropout_kernel_vec<...>",
       KernelClass::kRandom},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
       KernelClass::kForeach},
      {"void at::native::index_elementwise_kernel<128, 4, ...>", KernelClass::kIndex},
      {"void at::native::(anonymous namespace)::compute_grad_weight_embedding<...>",
       KernelClass::kIndex},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps>>",
       KernelClass::kReduction},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
       KernelClass::kElementwise},
      {"void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<...>",
       KernelClass::kElementwise},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
       KernelClass::kCollective},
      {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096>)", KernelClass::kCollective},
      {"my_own_kernel", KernelClass::kUnknown},
      {"", KernelClass::kUnknown},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(to_string(kernel_class_of(row.name)) == to_string(row.expected));
  }
}

// FFN and projection matmuls must not be taken for attention, whatever the model calls them.
TEST_CASE("what only looks like attention is not") {
  CHECK(kernel_class_of("nvjet_tst_attention_out_proj") == KernelClass::kMatmul);
  CHECK(kernel_class_of("void at::native::softmax_warp_forward_flash<...>") ==
        KernelClass::kSoftmaxLoss);
  CHECK(kernel_class_of("prefix_nvjet_hsh") == KernelClass::kUnknown);     // anchored
  CHECK(kernel_class_of("sdpa_sm_flash_fprop") == KernelClass::kUnknown);  // no digits
}

TEST_CASE("symbols are demangled, other names stay") {
  CHECK(demangled("_ZN2at6native4fillIfEEvPT_") == "at::native::fill<float>(float*)");
  CHECK(demangled("nvjet_hsh_128x256") == "nvjet_hsh_128x256");
}

}  // namespace
}  // namespace rematch
