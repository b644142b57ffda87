// Measures the overhead of checkpointing in a dispatch-bound step (dim 16, 4 tokens, 8 layers),
// where the engine's share of the time is largest. Each row gives the time of forward and backward
// under a policy, divided by the time without a policy. Policy scripts/gpu/keep_all.json recomputes
// nothing, so its row shows the cost of the engine alone. In the last rows, every block runs an op
// that is not in the plan, and times are divided by the time of a step that follows its plan.
#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/benchmarks/rows.h"
#include "tests/benchmarks/turns.h"
#include "tests/benchmarks/workload.h"
#include "tests/support/in_tree.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumSweeps = 484;
constexpr double kFullLimit = 1.25;
constexpr double kSelectiveLimit = 1.35;
constexpr double kEngineLimit = kFullLimit;
constexpr double kExtraOpLimit = 1.1;

struct Variant {
  std::string name;
  double limit;
  std::unique_ptr<Checkpoint> checkpoint;
  std::size_t arm;
  std::optional<std::size_t> off_plan_arm;
  std::unique_ptr<Checkpoint> off_plan;
};

// Removes the middle op of each region from the plan. Steps still run this op, so they deviate from
// the plan.
std::unique_ptr<Checkpoint> without_middle_op(Plan plan, Schedule schedule) {
  for (RegionType& type : plan.types) {
    type.ops.erase(type.ops.begin() + static_cast<std::ptrdiff_t>(type.ops.size() / 2));
  }
  Checkpoint::Options options;
  options.on_mismatch = OnMismatch::kFollowQuietly;
  return std::make_unique<Checkpoint>(plan, schedule, options);
}

void step_overhead(benchmark::State& state) {
  Workload workload("llama_small", kDispatchBound);
  Turns turns;
  const std::size_t none = turns.add([&] { workload.step(nullptr); });
  std::vector<Variant> variants;
  for (const std::string policy : {"full", "attn_only", "save_mm"}) {
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      std::unique_ptr<Checkpoint> checkpoint = workload.checkpoint(policy, schedule);
      const Checkpoint* used = checkpoint.get();
      const std::size_t arm = turns.add([&workload, used] { workload.step(used); });
      variants.push_back({policy + ", " + std::string(to_string(schedule)),
                          policy == "full" ? kFullLimit : kSelectiveLimit, std::move(checkpoint),
                          arm, std::nullopt, nullptr});
      if (policy == "attn_only") continue;
      Variant& variant = variants.back();
      variant.off_plan = without_middle_op(workload.plan(policy), schedule);
      const Checkpoint* off_plan = variant.off_plan.get();
      variant.off_plan_arm = turns.add([&workload, off_plan] { workload.step(off_plan); });
    }
  }
  const auto keep_all = workload.checkpoint(rematch::testing::in_tree("scripts/gpu/keep_all.json"),
                                            Schedule::kOnDemand);
  const std::size_t engine = turns.add([&] { workload.step(keep_all.get()); });
  for (auto _ : state) turns.sweep();
  state.counters["none_us"] = turns.nanoseconds(none).value / 1e3;
  for (const Variant& variant : variants) {
    const Estimate ratio = turns.ratio(variant.arm, none);
    state.counters[variant.name] = ratio.value;
    add_row({"dispatch_bound", variant.name, "x", ratio, variant.limit, {}});
  }
  for (const Variant& variant : variants) {
    if (!variant.off_plan_arm) continue;
    add_row({"off_plan",
             variant.name,
             "x",
             turns.ratio(*variant.off_plan_arm, variant.arm),
             kExtraOpLimit,
             {}});
  }
  add_row({"dispatch_bound",
           "engine alone: keeps everything",
           "x",
           turns.ratio(engine, none),
           kEngineLimit,
           {}});
}

BENCHMARK(step_overhead)->Iterations(kNumSweeps)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) { return rematch::benchmarks::run_benchmarks(argc, argv); }
