// Compares on_demand with whole_region for the same plan. First measures the times of steps that
// alternate between the two schedules. Then counts the executed ops and peak bytes of one step,
// with counting allocators.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/benchmarks/rows.h"
#include "tests/benchmarks/turns.h"
#include "tests/benchmarks/workload.h"
#include "tests/support/model_step.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumSweeps = 44;
const std::vector<std::string> kModels = {"llama_small", "wan_small"};
const std::vector<std::string> kPolicies = {"full", "nth_first(2)", "attn_only", "save_mm",
                                            "save_compute"};

bool is_selective(const std::string& policy) {
  return policy != "full" && !policy.starts_with("nth_first");
}

void times(benchmark::State& state, const std::string& model) {
  Workload workload(model, {});
  Turns turns;
  std::vector<std::unique_ptr<Checkpoint>> checkpoints;
  for (const std::string& policy : kPolicies) {
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      checkpoints.push_back(workload.checkpoint(policy, schedule));
      const Checkpoint* used = checkpoints.back().get();
      turns.add([&workload, used] { workload.step(used); });
    }
  }
  for (auto _ : state) turns.sweep();
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    const Estimate ratio = turns.ratio(2 * i + 1, 2 * i);
    state.counters[kPolicies[i]] = ratio.value;
    add_row({"schedules", model + " " + kPolicies[i] + ", step time", "x", ratio, {}, {}});
  }
}

// Must run after all timing, because counting allocators stay installed for the rest of the
// process.
void exact(benchmark::State& state, const std::string& model) {
  using testing::ModelStep;
  for (auto _ : state) {
    testing::ModelInstance instance({.preset = model, .dimensions = {}});
    const Trace trace = instance.trace();
    for (const std::string& policy : kPolicies) {
      const Plan plan = testing::plan_for(policy, trace);
      const auto step = [&](Schedule schedule) {
        const Checkpoint checkpoint(plan, schedule);
        const ModelStep result = testing::run_step(instance, &checkpoint);
        for (const NamedTensor& parameter : instance.model->parameters()) {
          parameter.tensor.mutable_grad().reset();
        }
        return result;
      };
      const ModelStep whole = step(Schedule::kWholeRegion);
      const ModelStep demanded = step(Schedule::kOnDemand);
      const double ops = static_cast<double>(demanded.num_ops()) / whole.num_ops();
      const double peak =
          static_cast<double>(demanded.peak_bytes) / static_cast<double>(whole.peak_bytes);
      const std::string name = model + " " + policy;
      add_row({"schedules",
               name + ", executed ops",
               "x",
               {ops, {}},
               1.0,
               std::to_string(demanded.num_ops()) + " / " + std::to_string(whole.num_ops())});
      add_row({"schedules",
               name + ", peak",
               "x",
               {peak, {}},
               1.0,
               std::to_string(demanded.peak_bytes) + " / " + std::to_string(whole.peak_bytes) +
                   " bytes",
               is_selective(policy)});
    }
  }
}

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  using namespace rematch::benchmarks;
  at::set_num_threads(1);
  for (const std::string& model : kModels) {
    benchmark::RegisterBenchmark(("schedules/times/" + model).c_str(), times, model)
        ->Iterations(kNumSweeps)
        ->Unit(benchmark::kMillisecond);
  }
  for (const std::string& model : kModels) {
    benchmark::RegisterBenchmark(("schedules/exact/" + model).c_str(), exact, model)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  return run_benchmarks(argc, argv);
}
