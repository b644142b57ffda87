// Compares predicted collectives, and the bytes that a rank sends in them, with the collectives
// that the engine runs on meta. Covers layouts of every kind, under policies that re-issue all,
// some and no collectives.
#include "harness/measure/memory.h"
#include "harness/ranks/collective_log.h"
#include "harness/run/prediction/prediction.h"
#include "models/preset/parallel.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/device/collective_time.h"
#include "policies/predict/step/counts.h"
#include "tests/support/catch.h"
#include "tests/support/small_presets.h"

namespace rematch {
namespace {

struct Case {
  const char* preset;
  const char* layout;
  std::map<std::string, std::int64_t> dimensions;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"llama_small", "fsdp=4", {{"layers", 3}}},
      {"llama_small", "tp=2,sp,fsdp=3", {{"layers", 3}}},
      {"llama_small", "tp=2,ulysses=2", {{"layers", 2}, {"kv_heads", 4}}},
      {"llama_small", "cp=4", {{"layers", 3}}},
      {"llama_small", "cp=2,fsdp=4", {{"layers", 3}}},
      {"llama_small", "cp=3,ring", {{"layers", 3}, {"tokens", 96}}},
      {"wan_small", "tp=2,fsdp=2", {{"layers", 3}}},
      {"ltx_small", "tp=2,sp", {{"layers", 3}}},
      {"moe_small", "ep=2,fsdp=2,product", {{"layers", 3}}},
      {"moe_small", "fsdp=6,ep=2", {{"layers", 3}}},
      {"deepseek_small", "tp=2,sp,ep=2", {{"layers", 3}}}};
  testing::require_every_family(all);
  return all;
}

ModelSpec spec_of(const Case& which) {
  auto dimensions = std::get<std::map<std::string, std::int64_t>>(parse_layout(which.layout));
  dimensions.insert(which.dimensions.begin(), which.dimensions.end());
  return std::get<ModelSpec>(make_spec(which.preset, dimensions));
}

CollectiveKind kind_of(const std::string& name) {
  return from_string<CollectiveKind>(name).value();
}

Traffic executed(const ModelSpec& spec, const Plan& plan, Schedule schedule) {
  TrainingSettings settings;
  settings.model = spec;
  settings.device = at::kMeta;
  settings.optimizer = OptimizerKind::kNothing;
  Training training(settings);
  training.use_plan(plan, schedule);
  CollectiveLog log;
  {
    const OpObserverGuard observe(&log);
    StepListener listener;
    log.begin_step();
    training.step(0, listener);
  }
  Traffic traffic;
  for (const auto& [group, totals] : log.totals_of_groups()) {
    for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
      for (const auto& [kind, count] : totals.executed[phase]) {
        Issued& issued = traffic[phase][kind_of(kind)];
        issued.count += count;
        const Bytes bytes{totals.bytes[phase].at(kind)};
        const bool is_shift = group == "cp" && kind_of(kind) == CollectiveKind::kAllToAll;
        issued.sent +=
            is_shift ? bytes : sent_bytes(kind_of(kind), bytes, spec.dimensions.at(group));
      }
    }
  }
  return traffic;
}

TEST_CASE(
    "a step on the meta device runs the predicted collectives and sends the predicted bytes") {
  install_counting_allocators();
  for (const Case& which : cases()) {
    const ModelSpec spec = spec_of(which);
    const Trace trace = MetaModel(spec, OptimizerKind::kNothing, "", 0).trace();
    for (const char* name : {"none", "full", "attn_only", "save_mm", "keep_collectives(full)"}) {
      const Policy policy = std::get<Policy>(parse_policy(name));
      const Plan plan = std::get<Plan>(resolve(policy, trace, NoEffect::kAllow));
      for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
        CAPTURE(which.preset, which.layout, name, to_string(schedule));
        const Traffic real = executed(spec, plan, schedule);
        const Traffic predicted = predict_traffic(trace, plan, schedule);
        for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
          CAPTURE(phase);
          REQUIRE(predicted[phase].size() == real[phase].size());
          for (const auto& [kind, issued] : predicted[phase]) {
            CAPTURE(to_string(kind));
            CHECK(issued.count == real[phase].at(kind).count);
            // a rank's share of each collective is rounded to whole bytes
            CHECK(std::abs((issued.sent - real[phase].at(kind).sent).count) <= issued.count);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rematch
