// Which kernels the steps of a 30-block DiT launch, by name, on the dry device.
#include <string_view>
#include <utility>

#include "harness/run/training.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/cuda.h"
#include "tests/support/dry_cuda/kernel_names.h"

namespace rematch {
namespace {

constexpr int kSteps = 10;
constexpr std::int64_t kBlocks = 30;

VariantSettings thirty_blocks(const std::string& dtype) {
  VariantSettings settings;
  settings.model = std::get<ModelSpec>(make_spec("wan_1_3b", {{"layers", kBlocks},
                                                              {"dim", 64},
                                                              {"heads", 4},
                                                              {"ffn", 128},
                                                              {"tokens", 64},
                                                              {"batch", 1}}));
  settings.model.dtype = dtype;
  settings.policies = std::get<std::vector<Policy>>(parse_policies("none,full,attn_only"));
  settings.schedules = {Schedule::kWholeRegion};
  settings.device = "cuda";
  settings.simulate = false;
  return settings;
}

struct Launches {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t auxiliary = 0;
  bool operator==(const Launches&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Launches& launches) {
  return out << launches.forward << " forward, " << launches.backward << " backward, "
             << launches.auxiliary << " auxiliary";
}

// Flash attention's kernels; for float32, which it does not take, those of LibTorch's
// memory-efficient one. Splitting over keys takes a second kernel that adds up, backward one before
// and one after.
Launches attention_launches(const std::string& dtype) {
  using dry_cuda::num_kernels;
  if (dtype == "float32") {
    return {num_kernels("fmha_cutlassF_f32"), num_kernels("fmha_cutlassB_f32"), 0};
  }
  return {num_kernels("16flash_fwd_kernel") + num_kernels("24flash_fwd_splitkv_kernel"),
          num_kernels("flash_bwd_dq_dk_dv_loop"),
          num_kernels("flash_fwd_splitkv_combine") + num_kernels("flash_bwd_dot_do_o") +
              num_kernels("flash_bwd_convert_dq")};
}

Launches ten_steps(const VariantSettings& settings, const Variant& variant) {
  TrainingSettings training_settings;
  training_settings.model = settings.model;
  training_settings.device = at::Device(at::kCUDA, 0);
  Training training(training_settings);
  training.use_plan(variant.plan, variant.identity.schedule);
  StepListener nobody;
  dry_cuda_reset();
  for (int step = 0; step < kSteps; ++step) training.step(step, nobody);
  return attention_launches(settings.model.dtype);
}

// Two attention ops a block, ten steps: 30 x 2 x 10.
TEST_CASE("30 blocks launch 600 attention kernels in ten forward passes, twice as many under full",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const char* dtype : {"float32", "bfloat16"}) {
    const VariantSettings settings = thirty_blocks(dtype);
    const auto variants = std::get<std::vector<Variant>>(make_variants(settings));
    for (const Variant& variant : variants) {
      const Launches launches = ten_steps(settings, variant);
      CAPTURE(dtype, variant.policy, launches);
      WARN(dtype << ", " << variant.policy << ": " << launches);
      CHECK(launches.forward == (variant.policy == "full" ? 1200 : 600));
      CHECK(launches.backward == 600);
    }
  }
}

}  // namespace
}  // namespace rematch
