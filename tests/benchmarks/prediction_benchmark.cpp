// Times the prediction of one step under one policy. The engine predicts 32 layers of llama3_8b on
// meta tensors, and the simulator predicts 80 layers from the trace. A separate row times
// parameters, trace and plans, which a model needs only once.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "harness/measure/memory.h"
#include "harness/run/prediction/prediction.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/step.h"
#include "tests/benchmarks/rows.h"
#include "tests/benchmarks/turns.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumSweeps = 44;
constexpr double kLimitMilliseconds = 30;
const std::vector<std::string> kPolicies = {"none",      "full",    "nth_first(2)",
                                            "attn_only", "save_mm", "save_compute"};

Estimate in_milliseconds(Estimate nanoseconds) {
  constexpr double kNanosecondsInMillisecond = 1e6;
  nanoseconds.value /= kNanosecondsInMillisecond;
  if (nanoseconds.interval) {
    nanoseconds.interval->low /= kNanosecondsInMillisecond;
    nanoseconds.interval->high /= kNanosecondsInMillisecond;
  }
  return nanoseconds;
}

void add_single(const std::string& what, std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  add_row({"prediction", what, "ms", {elapsed.count(), {}}, {}, "once a model"});
}

void prediction(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const ModelSpec spec = std::get<ModelSpec>(make_spec("llama3_8b", {}));
  const TracedModel traced =
      trace_model(spec, OptimizerChoice{}, /*data_file=*/"", /*seed=*/0, /*round=*/1);
  const Trace& trace = traced.trace;
  add_single("llama3_8b, model and trace", begin);
  const Clock::time_point resolving = Clock::now();
  std::vector<Plan> plans;
  for (const std::string& policy : kPolicies) {
    plans.push_back(std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace)));
  }
  add_single("llama3_8b, resolving " + std::to_string(kPolicies.size()) + " policies", resolving);
  StepPredictor predictor(traced);
  Turns turns;
  for (const Plan& plan : plans) {
    turns.add([&] { benchmark::DoNotOptimize(predictor.predict(plan, Schedule::kOnDemand)); });
  }
  for (auto _ : state) turns.sweep();
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    const Estimate time = in_milliseconds(turns.nanoseconds(i));
    state.counters[kPolicies[i]] = time.value;
    add_row({"prediction", "llama3_8b " + kPolicies[i], "ms", time, kLimitMilliseconds, {}});
  }
}

constexpr std::int64_t kManyLayers = 80;
constexpr double kSimulationLimitMilliseconds = 1;

void simulation(benchmark::State& state) {
  const ModelSpec spec = std::get<ModelSpec>(make_spec("llama3_8b", {{"layers", kManyLayers}}));
  const Trace trace = MetaModel(spec, OptimizerChoice{}, /*data_file=*/"", /*seed=*/0).trace();
  StepSimulator simulator(trace);
  std::vector<Plan> plans;
  for (const std::string& policy : kPolicies) {
    plans.push_back(std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace)));
  }
  Turns turns;
  for (const Plan& plan : plans) {
    turns.add([&] { benchmark::DoNotOptimize(simulator.simulate(plan, Schedule::kOnDemand)); });
  }
  for (auto _ : state) turns.sweep();
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    const Estimate time = in_milliseconds(turns.nanoseconds(i));
    state.counters[kPolicies[i]] = time.value;
    add_row(
        {"simulation", "80 layers, " + kPolicies[i], "ms", time, kSimulationLimitMilliseconds, {}});
  }
}

BENCHMARK(simulation)->Iterations(kNumSweeps)->Unit(benchmark::kMillisecond);
BENCHMARK(prediction)->Iterations(kNumSweeps)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  at::set_num_threads(1);
  rematch::install_counting_allocators();
  return rematch::benchmarks::run_benchmarks(argc, argv);
}
