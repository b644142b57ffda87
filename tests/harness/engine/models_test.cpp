// Runs real models of reduced size under every policy of the catalogue and both schedules. Compares
// the results with a run without checkpointing. Also compares whole_region with an independent
// implementation that repeats whole blocks (tests/support/closure_checkpoint.h).
#include <random>

#include "tests/support/catch.h"
#include "tests/support/model_step.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/small_presets.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr const char* kPolicies[] = {
    "full",       "full_nostop", "nth_last(2)",      "nth_first(2)", "skip_nth(2)",
    "first_n(3)", "last_n(3)",   "skip_list([0,2])", "only_list(1)", "attn_only",
    "save_mm",    "segments(3)", "save_compute",     "root"};

std::map<std::string, std::int64_t> with_packed_weights(
    std::map<std::string, std::int64_t> dimensions) {
  dimensions["packed_weights"] = 1;
  return dimensions;
}

const std::vector<ModelCase>& cases() {
  static const std::map<std::string, std::int64_t> llama = {
      {"layers", 4}, {"dim", 32}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 64}, {"tokens", 16}};
  static const std::map<std::string, std::int64_t> wan = {
      {"layers", 4}, {"dim", 48}, {"heads", 4}, {"ffn", 64}, {"tokens", 16}, {"text_tokens", 4}};
  static const std::map<std::string, std::int64_t> moe = {
      {"layers", 4},  {"dim", 32},    {"heads", 4},       {"kv_heads", 2},   {"ffn", 64},
      {"tokens", 16}, {"experts", 3}, {"expert_ffn", 16}, {"shared_ffn", 24}};
  static const std::map<std::string, std::int64_t> deepseek = {
      {"layers", 4},   {"dim", 32},     {"heads", 4},       {"latent_dim", 16},
      {"nope_dim", 8}, {"rope_dim", 4}, {"value_dim", 8},   {"ffn", 64},
      {"tokens", 16},  {"experts", 4},  {"expert_ffn", 16}, {"shared_ffn", 24}};
  static const std::vector<ModelCase> all = [] {
    std::vector<ModelCase> list;
    for (const char* dtype : {"float32", "bfloat16"}) {
      list.push_back({"llama_small", llama, dtype});
      list.push_back({"moe_small", moe, dtype});
      list.push_back({"deepseek_small", deepseek, dtype});
      list.push_back({"wan_small", wan, dtype});
      list.push_back({"ltx_small", wan, dtype});
    }
    require_every_family(list);
    for (std::size_t i = 0, plain = list.size(); i < plain; ++i) {
      list.push_back(list[i]);
      list.back().dimensions["fused_ops"] = 1;
      list.push_back(list.back());
      list.back().dimensions["packed_weights"] = 1;
    }
    list.push_back({"llama_small", with_packed_weights(llama), "float32"});
    // The fused loss keeps the logits of the models above, because they are small. These are large.
    for (const std::int64_t kept_logits : {0, 1}) {
      list.push_back({"llama_small", llama, "bfloat16"});
      list.back().dimensions["fused_ops"] = 1;
      list.back().dimensions["vocab"] = 20'000;
      if (kept_logits == 1) list.back().dimensions["kept_logits"] = 1;
    }
    list.push_back({"wan_small", with_packed_weights(wan), "bfloat16"});
    return list;
  }();
  return all;
}

TEST_CASE(
    "every policy is bitwise equal to no checkpointing, and on_demand needs no more ops or bytes "
    "than whole_region") {
  for (const ModelCase& which : cases()) {
    const Trace trace = ModelInstance(which).trace();
    CAPTURE(which.preset, which.dtype, which.dimensions.contains("fused_ops"));
    ModelInstance plain(which);
    const ModelStep none = run_step(plain, nullptr);
    for (const char* policy : kPolicies) {
      CAPTURE(which.preset, which.dtype, policy);
      const Plan plan = plan_for(policy, trace);
      std::map<Schedule, ModelStep> steps;
      for (const Schedule schedule : kSchedules) {
        const Checkpoint checkpoint = strict(plan, schedule);
        ModelInstance instance(which);
        steps[schedule] = run_step(instance, &checkpoint);
        CHECK(first_difference(none.outcome, steps[schedule].outcome) == "");
      }
      const ModelStep& whole = steps[Schedule::kWholeRegion];
      const ModelStep& on_demand = steps[Schedule::kOnDemand];
      CHECK(whole.num_ops() > none.num_ops());
      CHECK(on_demand.num_ops() <= whole.num_ops());
      CHECK(on_demand.peak_bytes <= whole.peak_bytes);
      CHECK(on_demand.after_forward_bytes <= whole.after_forward_bytes);
    }
  }
}

ModelStep run_closures(ModelInstance& instance, const ClosurePolicy& policy) {
  instance.model->wrap_blocks([policy](const Region& block, const at::Tensor& x) {
    return closure_checkpoint(block, x, policy);
  });
  ModelStep step = run_step(instance, nullptr);
  instance.model->wrap_blocks({});
  return step;
}

TEST_CASE(
    "on real blocks, whole_region executes the same ops and holds the same bytes as an independent "
    "implementation") {
  for (const ModelCase& which : cases()) {
    const Trace trace = ModelInstance(which).trace();
    for (std::uint32_t seed = 0; seed < num_seeds(8); ++seed) {
      // Seed 0 keeps no op, and seed 1 keeps every op that can be kept.
      const auto keep = [seed](int op) {
        if (seed < 2) return seed == 1;
        std::mt19937 bits(seed * 7919U + static_cast<std::uint32_t>(op));
        return bits() % 3U == 0;
      };
      CAPTURE(which.preset, which.dtype, seed);
      const bool early_stop = seed % 5 != 4;
      const Checkpoint checkpoint =
          strict(plan_of_blocks(
                     trace, [&](int, int op) { return keep(op); }, early_stop),
                 Schedule::kWholeRegion);
      ModelInstance recorded(which);
      const ModelStep engine = run_step(recorded, &checkpoint);
      ModelInstance wrapped(which);
      const ModelStep oracle =
          run_closures(wrapped, {.save = [&](const auto&, int op) { return keep(op); },
                                 .early_stop = early_stop,
                                 .preserve_generator = false});
      CHECK(first_difference(oracle.outcome, engine.outcome) == "");
      CHECK(engine.ops == oracle.ops);
      CHECK(engine.after_forward_bytes == oracle.after_forward_bytes);
      CHECK(engine.peak_bytes <= oracle.peak_bytes);
    }
  }
}

}  // namespace
}  // namespace rematch::testing
