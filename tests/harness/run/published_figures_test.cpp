// Checks that predict gives the figures that reports/results/published_figures.md lists as
// predicted.
#include <cmath>
#include <map>

#include "harness/measure/memory.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

constexpr double kGB = 1e9;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Asked {
  const char* preset;
  const char* video = nullptr;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  const char* policies = "full";
  Schedule schedule = Schedule::kWholeRegion;
  std::map<std::string, std::int64_t> dimensions;
};

// Predicts several policies, and returns variants by policy. Sizes are rounded up like in CUDA's
// caching allocator.
std::map<std::string, Variant> predict(const Asked& asked) {
  RunSettings settings;
  std::map<std::string, std::int64_t> dimensions = asked.dimensions;
  if (asked.video != nullptr) {
    const auto family = std::get<ModelSpec>(make_spec(asked.preset, {})).family;
    dimensions = std::get<decltype(dimensions)>(video_dimensions(asked.video, family));
  }
  settings.request.model = std::get<ModelSpec>(make_spec(asked.preset, dimensions, "bfloat16"));
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies(asked.policies));
  settings.request.schedules = {asked.schedule};
  settings.request.optimizer = asked.optimizer;
  settings.request.device = "meta";
  settings.round = kCudaRounding;
  std::map<std::string, Variant> by_policy;
  auto variants = make_variants(settings);
  for (Variant& variant : std::get<std::vector<Variant>>(variants)) {
    by_policy.emplace(variant.policy, std::move(variant));
  }
  return by_policy;
}

double peak(const Variant& variant, double unit) {
  const auto bytes = static_cast<double>(variant.prediction.memory.peak_allocated.value().count);
  return std::round(100 * bytes / unit) / 100;
}

double after_forward(const Variant& variant) {
  return static_cast<double>(variant.prediction.memory.after_forward.value().count);
}

std::int64_t attention_forwards(const Variant& variant) {
  std::int64_t calls = 0;
  for (const Phase phase : {Phase::kForward, Phase::kRecompute}) {
    const auto& classes = variant.prediction.counts.by_class[static_cast<std::size_t>(phase)];
    const auto found = classes.find(OpClass::kAttentionForward);
    if (found != classes.end()) calls += found->second;
  }
  return calls;
}

TEST_CASE(
    "FastVideo: attention calls, bytes per block, and peaks at the stated and at the likely video "
    "size") {
  constexpr const char* kPolicies = "full,attn_only,attn_only_self";
  const auto stated = predict({"wan_1_3b", "77x720x1280", OptimizerKind::kAdamW, kPolicies});
  CHECK(10 * attention_forwards(stated.at("full")) == 1200);
  CHECK(10 * attention_forwards(stated.at("attn_only")) == 600);
  CHECK(peak(stated.at("full"), kGB) == 37.83);
  CHECK(peak(stated.at("attn_only"), kGB) == 50.86);
  const double none_inside = after_forward(stated.at("full"));
  CHECK(std::lround((after_forward(stated.at("attn_only")) - none_inside) / 30 / 1e6) == 449);
  CHECK(std::lround((after_forward(stated.at("attn_only_self")) - none_inside) / 30 / 1e6) == 225);

  const auto likely = predict({"wan_1_3b", "77x480x832", OptimizerKind::kAdamW, kPolicies});
  CHECK(peak(likely.at("full"), kGB) == 27.66);
  CHECK(peak(likely.at("attn_only"), kGB) == 33.31);
  const auto on_demand =
      predict({"wan_1_3b", "77x480x832", OptimizerKind::kAdamW, "attn_only", Schedule::kOnDemand});
  CHECK(peak(on_demand.at("attn_only"), kGB) == 31.38);
}

TEST_CASE("diffusers: memory without checkpointing is linear in the number of blocks") {
  const auto ltx = predict(
      {"ltx", "81x512x768", OptimizerKind::kNothing, "none,full,nth_first(2),nth_first(4)"});
  CHECK(peak(ltx.at("none"), kGiB) == 19.23);
  CHECK(peak(ltx.at("full"), kGiB) == 7.68);
  CHECK(peak(ltx.at("nth_first(2)"), kGiB) == 11.81);
  CHECK(peak(ltx.at("nth_first(4)"), kGiB) == 15.48);
  const double full = after_forward(ltx.at("full"));
  const double a_block = (after_forward(ltx.at("nth_first(2)")) - full) / 14;
  CHECK(after_forward(ltx.at("nth_first(4)")) == Approx(full + 21 * a_block).epsilon(1e-3));
  CHECK(after_forward(ltx.at("none")) == Approx(full + 28 * a_block).epsilon(1e-3));
}

TEST_CASE("torchtune: checkpointing of a 3B model, with AdamW's two moments in bfloat16") {
  const auto llama = predict({"llama3_3b",
                              nullptr,
                              OptimizerKind::kNothing,
                              "none,full,offload_inputs(full)",
                              Schedule::kWholeRegion,
                              {{"tokens", 4096}, {"batch", 2}, {"fused_ops", 1}}});
  const auto& full = llama.at("full");
  const double moments =
      2 * static_cast<double>(full.prediction.memory.parameter.value().count) / kGiB;
  CHECK(moments == Approx(11.97).margin(0.01));
  CHECK(peak(llama.at("none"), kGiB) + moments == Approx(38.3).margin(0.05));
  CHECK(peak(full, kGiB) + moments == Approx(24.8).margin(0.05));
  // The inputs of 27 of 28 layers are offloaded, because the last layer's input stays on the
  // device. An input has 2 x 4096 tokens, with 3072 channels of 2 bytes.
  const auto& offloaded = llama.at("offload_inputs(full)");
  const double inputs = 27.0 * 2 * 4096 * 3072 * 2 / kGiB;
  CHECK(after_forward(full) - after_forward(offloaded) == inputs * kGiB);
  // At the peak, all gradients exist and all inputs have been freed, so offloading does not lower
  // the peak.
  CHECK(peak(offloaded, kGiB) == peak(full, kGiB));
  const auto at_loss = [&](const Variant& variant) {
    const auto& memory = variant.prediction.memory;
    return static_cast<double>(memory.peak_by_phase.at("backward.loss").count) / kGiB + moments;
  };
  CHECK(at_loss(full) == Approx(20.1).margin(0.05));
  CHECK(at_loss(offloaded) == Approx(18.9).margin(0.05));
  CHECK(offloaded.prediction.memory.host.value().peak == Bytes{27LL * 2 * 4096 * 3072 * 2});
}

TEST_CASE("torchtitan: separate regions for attention and experts hold more than whole blocks") {
  const auto deepseek =
      predict({"deepseek_v3_16b", nullptr, OptimizerKind::kNothing,
               "full,sac_titan_2025(deepseek_v3),sac_split_flex_compiled,sac_split(attn: full, "
               "ffn: full)"});
  CHECK(peak(deepseek.at("sac_titan_2025(deepseek_v3)"), kGiB) == 63.67);
  CHECK(peak(deepseek.at("sac_split_flex_compiled"), kGiB) == 74.05);
  CHECK(peak(deepseek.at("full"), kGiB) == 62.96);
  CHECK(peak(deepseek.at("sac_split(attn: full, ffn: full)"), kGiB) == 62.84);
}

}  // namespace
}  // namespace rematch::testing
