// Measures the overhead of checkpointing where the engine's share is largest: a dispatch-bound step
// (dim 16, 4 tokens, 8 layers). Each row gives forward and backward under a policy over the same
// step without a policy. The overhead is recomputation plus the engine. scripts/gpu/keep_all.json
// records every block and recomputes nothing, so its row shows the engine alone.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
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

struct Variant {
  std::string name;
  double limit;
  std::unique_ptr<Checkpoint> checkpoint;
  std::size_t arm;
};

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
                          arm});
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
  add_row({"dispatch_bound",
           "engine alone: everything kept",
           "x",
           turns.ratio(engine, none),
           kEngineLimit,
           {}});
}

BENCHMARK(step_overhead)->Iterations(kNumSweeps)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) { return rematch::benchmarks::run_benchmarks(argc, argv); }
