// Runs steps of a 30-block DiT on the dry device, and counts the launched kernels by name.
#include <cstdio>
#include <string_view>
#include <utility>

#include "harness/dry_cuda/kernel_names.h"
#include "harness/run/variants.h"
#include "harness/training/training.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

constexpr int kSteps = 10;
constexpr std::int64_t kBlocks = 30;

RunSettings thirty_blocks(const std::string& dtype) {
  RunSettings settings;
  settings.request.model = std::get<ModelSpec>(make_spec("wan_1_3b", {{"layers", kBlocks},
                                                                      {"dim", 64},
                                                                      {"heads", 4},
                                                                      {"ffn", 128},
                                                                      {"tokens", 64},
                                                                      {"batch", 1}}));
  settings.request.model.dtype = dtype;
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies("none,full,attn_only"));
  settings.request.schedules = {Schedule::kWholeRegion};
  settings.request.device = "cuda";
  return settings;
}

struct Launches {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

// Attention kernels. If flash attention splits over keys, an additional kernel combines the
// results, which is not counted here. Flash attention does not support float32, so float32 uses
// LibTorch's memory-efficient kernels.
constexpr std::string_view kForwardKernels[] = {"fmha_cutlassF_f32", "16flash_fwd_kernel",
                                                "24flash_fwd_splitkv_kernel"};
constexpr std::string_view kBackwardKernels[] = {"fmha_cutlassB_f32", "flash_bwd_dq_dk_dv_loop"};

// Returns how often kernels with these names were launched. Prints a line for each name, because
// scripts/test shows these lines in its summary.
template <std::size_t kNum>
std::int64_t count(const std::string& step, const std::string_view (&names)[kNum]) {
  std::int64_t sum = 0;
  for (const std::string_view name : names) {
    const std::int64_t launches = dry_cuda::num_kernels(name);
    sum += launches;
    if (launches == 0) continue;
    const std::string_view written = name.substr(name.find_first_not_of("0123456789"));
    std::printf("dry launches: %s: %lld %.*s\n", step.c_str(), static_cast<long long>(launches),
                static_cast<int>(written.size()), written.data());
  }
  return sum;
}

Launches ten_steps(const RunSettings& settings, const Variant& variant) {
  TrainingSettings training_settings;
  training_settings.model = settings.request.model;
  training_settings.device = at::Device(at::kCUDA, 0);
  training_settings.determinism = Determinism::kFastest;
  Training training(training_settings);
  training.use_plan(variant.plan, variant.identity.schedule);
  StepListener nobody;
  dry_cuda_reset();
  for (int step = 0; step < kSteps; ++step) training.step(step, nobody);
  const std::string step = settings.request.model.dtype + ", " + variant.policy;
  return {count(step, kForwardKernels), count(step, kBackwardKernels)};
}

// 600 attentions: two in each of 30 blocks, in ten steps.
TEST_CASE(
    "30 blocks launch 600 attention kernels in ten forward passes, and twice as many with policy "
    "full",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const char* dtype : {"float32", "bfloat16"}) {
    const RunSettings settings = thirty_blocks(dtype);
    const auto variants = std::get<std::vector<Variant>>(make_variants(settings));
    for (const Variant& variant : variants) {
      const Launches launches = ten_steps(settings, variant);
      CAPTURE(dtype, variant.policy);
      CHECK(launches.forward == (variant.policy == "full" ? 1200 : 600));
      CHECK(launches.backward == 600);
    }
  }
}

// A block has 26 parameters, and the rest of the model 15: 795 for 30 blocks. One launch updates 64
// parameters.
TEST_CASE("the fused optimizer updates all parameters in few launches", "[device]") {
  REMATCH_NEEDS_CUDA();
  RunSettings settings = thirty_blocks("bfloat16");
  settings.request.model.dimensions["fused_ops"] = 1;
  const auto variants = std::get<std::vector<Variant>>(make_variants(settings));
  ten_steps(settings, variants.front());
  constexpr std::string_view kUpdates[] = {"rematch_adamw_update"};
  constexpr std::string_view kLibTorchs[] = {"FusedAdam"};
  CHECK(count("fused optimizer", kUpdates) == kSteps * 13);
  CHECK(count("fused optimizer", kLibTorchs) == 0);
}

}  // namespace
}  // namespace rematch
