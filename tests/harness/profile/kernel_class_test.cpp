#include "harness/profile/kernel_class.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

struct Row {
  const char* name;
  KernelClass expected;
};

// These names cannot be read from a library: their kernels are compiled on first use, or belong to
// newer releases. They come from published profiles and sources, not from a device.
TEST_CASE("each kernel name maps to its class") {
  const std::vector<Row> rows = {
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, false, false, "
       "cutlass::bfloat16_t>, false, true>(pytorch_flash::Flash_fwd_params)",
       KernelClass::kAttentionForward},
      {"void pytorch_flash::flash_fwd_splitkv_kernel<...>", KernelClass::kAttentionForward},
      {"void pytorch_flash::flash_fwd_splitkv_combine_kernel<...>",
       KernelClass::kAttentionAuxiliary},
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
      {"nvjet_sm90_tst_192x192_64x3_2x1_v_bz_coopB_NTN", KernelClass::kMatmul},
      {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT", KernelClass::kMatmul},
      {"nvjet_sm90_tss_64x8_64x16_4x1_v_bz_splitK_TNT", KernelClass::kMatmul},
      {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16>",
       KernelClass::kMatmul},
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
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::Half, long, unsigned "
       "int, "
       "2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::Half, unsigned int>)",
       KernelClass::kIndex},
      {"triton_poi_fused_add_all_reduce_0", KernelClass::kElementwise},
      {"triton_red_fused_sum_0", KernelClass::kReduction},
      {"triton_per_fused_sum_1", KernelClass::kReduction},
      {"triton_tem_fused_mm_0", KernelClass::kMatmul},
      {"flash::FlashAttentionForwardSm100", KernelClass::kAttentionForward},
      {"my_own_kernel", KernelClass::kUnknown},
      {"", KernelClass::kUnknown},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(to_string(kernel_class_of(row.name)) == to_string(row.expected));
  }
}

struct Named {
  std::string expected;
  std::string symbol;
};

std::vector<Named> names_of_libraries() {
  std::ifstream file(testing::in_tree("tests/harness/profile/kernel_names.tsv"));
  std::vector<Named> names;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t tab = line.find('\t');
    REQUIRE(tab != std::string::npos);
    names.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  return names;
}

TEST_CASE("the demangled name of each kernel in LibTorch's libraries maps to its class") {
  const std::vector<Named> names = names_of_libraries();
  CHECK(names.size() >= 120);
  std::set<std::string> classes;
  for (const Named& name : names) {
    CAPTURE(name.symbol);
    CHECK(to_string(kernel_class_of(demangled(name.symbol))) == name.expected);
    classes.insert(name.expected);
  }
  // These are all classes except `memory`, which no kernel has.
  CHECK(classes.size() == kWords<KernelClass>.size() - 1);
}

// A kernel record identifies a kernel only by its name.
TEST_CASE("every kernel of this project has a descriptive name and a class") {
  const std::regex declaration(
      R"(__global__\s+void\s+(?:__launch_bounds__\([^()]*\)\s+)?(\w+)\s*\()");
  std::map<std::string, std::string> classes;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(testing::in_tree("kernels"))) {
    if (!entry.path().extension().string().starts_with(".cu")) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator found(source.begin(), source.end(), declaration), end; found != end;
         ++found) {
      const std::string name = (*found)[1];
      CHECK_THAT(name, Catch::StartsWith("rematch_"));
      classes[name] =
          to_string(kernel_class_of("void rematch::kernels::cuda::(anonymous namespace)::" + name +
                                    "<float>(rematch::kernels::RmsNormBackward)"));
    }
  }
  CHECK(classes == std::map<std::string, std::string>{
                       {"rematch_grouped_gemm", "matmul"},
                       {"rematch_rms_norm_forward", "norm"},
                       {"rematch_rms_norm_backward", "norm"},
                       {"rematch_rms_norm_rope_forward", "norm"},
                       {"rematch_rms_norm_rope_backward", "norm"},
                       {"rematch_layer_norm_forward", "norm"},
                       {"rematch_layer_norm_backward", "norm"},
                       {"rematch_bias_gelu_forward", "elementwise"},
                       {"rematch_bias_gelu_backward", "elementwise"},
                       {"rematch_gated_add_forward", "elementwise"},
                       {"rematch_gated_add_backward", "elementwise"},
                       {"rematch_modulate_forward", "elementwise"},
                       {"rematch_modulate_backward", "elementwise"},
                       {"rematch_rope_turn", "elementwise"},
                       {"rematch_silu_mul_forward", "elementwise"},
                       {"rematch_silu_mul_backward", "elementwise"},
                       {"rematch_cross_entropy_add_logits", "softmax_loss"},
                       {"rematch_cross_entropy_differentiate_logits", "softmax_loss"},
                       {"rematch_adamw_update", "foreach"},
                       {"rematch_add_partial_sums", "reduction"}});
}

// Matmuls of projections are not attention, even if their names contain the word.
TEST_CASE("a kernel that only resembles attention is not attention") {
  CHECK(kernel_class_of("nvjet_tst_attention_out_proj") == KernelClass::kMatmul);
  CHECK(kernel_class_of("void at::native::softmax_warp_forward_flash<...>") ==
        KernelClass::kSoftmaxLoss);
  CHECK(kernel_class_of("prefix_nvjet_hsh") == KernelClass::kUnknown);  // anchored
  CHECK(kernel_class_of("sdpa_sm_flash_fprop") ==
        KernelClass::kUnknown);  // the pattern requires digits after sm
}

TEST_CASE("a short name omits template arguments and parameters") {
  CHECK(short_name("pytorch_flash::flash_fwd_kernel<Traits<128, 64>, false>(Params)") ==
        "pytorch_flash::flash_fwd_kernel");
  CHECK(short_name("at::native::(anonymous namespace)::softmax_warp_forward<float, 8>(float*)") ==
        "at::native::(anonymous namespace)::softmax_warp_forward");
  CHECK(short_name("at::native::Outer<float>::kernel<int>(int)") == "at::native::Outer::kernel");
  CHECK(short_name("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT") ==
        "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT");
  CHECK(short_name("f<(a > b)>(int)") == "f");
  CHECK(short_name("") == "");
}

TEST_CASE("symbols are demangled, and other names stay unchanged") {
  CHECK(demangled("_ZN2at6native4fillIfEEvPT_") == "at::native::fill<float>(float*)");
  CHECK(demangled("nvjet_hsh_128x256") == "nvjet_hsh_128x256");
}

}  // namespace
}  // namespace rematch
