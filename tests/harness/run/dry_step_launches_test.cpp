// Counts the kernels of a step on the dry device, with eager ops, with fused ops, and with packed
// weights. The models have the blocks of their presets, but are narrow. kernels/README.md quotes
// the figures.
#include <array>

#include "harness/dry_cuda/kernel_names.h"
#include "harness/training/training.h"
#include "models/preset/preset.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

using Dimensions = std::map<std::string, std::int64_t>;

// Returns the kernels of one step without checkpointing, in bfloat16. The optimizer does not run,
// because its launches do not depend on the blocks.
std::int64_t launches_of(const std::string& preset, Dimensions dimensions, std::int64_t fused,
                         std::int64_t packed) {
  dimensions["fused_ops"] = fused;
  dimensions["packed_weights"] = packed;
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec(preset, dimensions, "bfloat16"));
  settings.device = at::Device(at::kCUDA, 0);
  settings.determinism = Determinism::kFastest;
  settings.optimizer = OptimizerKind::kNothing;
  Training training(settings);
  StepListener nobody;
  training.step(0, nobody);
  dry_cuda_reset();
  training.step(1, nobody);
  return dry_cuda::num_kernels("");
}

TEST_CASE("fused ops and packed weights launch fewer kernels in a step", "[device]") {
  REMATCH_NEEDS_CUDA();
  // The vocabulary is so large that the loss does not keep its logits, as with llama3_1b's own
  // sizes.
  const Dimensions llama = {{"dim", 64},  {"heads", 4},      {"kv_heads", 2},
                            {"ffn", 128}, {"vocab", 16'384}, {"tokens", 64}};
  const Dimensions wan = {{"dim", 64},    {"heads", 4},       {"ffn", 128},
                          {"tokens", 64}, {"text_tokens", 8}, {"text_dim", 32}};
  const auto all = [](const std::string& preset, const Dimensions& dimensions) {
    return std::array<std::int64_t, 3>{launches_of(preset, dimensions, 0, 0),
                                       launches_of(preset, dimensions, 1, 0),
                                       launches_of(preset, dimensions, 1, 1)};
  };
  CHECK(all("llama3_1b", llama) == std::array<std::int64_t, 3>{2068, 725, 565});
  CHECK(all("wan_1_3b", wan) == std::array<std::int64_t, 3>{7756, 2857, 2467});
}

}  // namespace
}  // namespace rematch
