// Measures the overhead of the counting pass: the time of a step with the pass's observer, divided
// by the time of a step without an observer.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/measure/op_counter.h"
#include "tests/benchmarks/rows.h"
#include "tests/benchmarks/turns.h"
#include "tests/benchmarks/workload.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumSweeps = 52;
constexpr double kLimit = 1.10;

struct Case {
  std::string name;
  std::string preset;
  Overrides overrides;
};

void counting_pass(benchmark::State& state, const Case& which) {
  Workload workload(which.preset, which.overrides);
  const std::unique_ptr<Checkpoint> full = workload.checkpoint("full", Schedule::kOnDemand);
  OpCounter counter;
  Turns turns;
  const auto counted = [&](const Checkpoint* checkpoint) {
    const OpObserverGuard observe(&counter);
    workload.step(checkpoint);
  };
  const std::size_t none = turns.add([&] { workload.step(nullptr); });
  const std::size_t none_counted = turns.add([&] { counted(nullptr); });
  const std::size_t recomputed = turns.add([&] { workload.step(full.get()); });
  const std::size_t recomputed_counted = turns.add([&] { counted(full.get()); });
  for (auto _ : state) turns.sweep();
  const auto report = [&](const std::string& policy, const Estimate& ratio) {
    state.counters[policy] = ratio.value;
    add_row({"counting", which.name + " " + policy, "x", ratio, kLimit, {}});
  };
  report("none", turns.ratio(none_counted, none));
  report("full", turns.ratio(recomputed_counted, recomputed));
}

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  using namespace rematch::benchmarks;
  at::set_num_threads(1);
  const std::vector<Case> cases = {{"llama_small", "llama_small", {}},
                                   {"wan_small", "wan_small", {}},
                                   {"dispatch-bound", "llama_small", kDispatchBound}};
  for (const Case& which : cases) {
    benchmark::RegisterBenchmark(("counting_pass/" + which.name).c_str(), counting_pass, which)
        ->Iterations(kNumSweeps)
        ->Unit(benchmark::kMillisecond);
  }
  return run_benchmarks(argc, argv);
}
