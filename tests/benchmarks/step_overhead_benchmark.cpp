// What the engine costs where it shows most: a dispatch-bound training step (dim 16, 4 tokens,
// 8 layers), forward and backward, under each policy, over the same step with none. Variants take
// turns in random order; the last lines are the ratios of medians that the README quotes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "harness/engine/recording.h"
#include "harness/trace/tracer.h"
#include "models/model.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"

namespace rematch {
namespace {

template <typename T>
T value_or_exit(std::variant<T, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) {
    std::fprintf(stderr, "%s\n", rejected->message.c_str());
    std::exit(1);
  }
  return std::get<T>(std::move(result));
}

struct Setup {
  ModelSpec spec = value_or_exit(make_spec("llama_small", {{"dim", 16},
                                                           {"heads", 2},
                                                           {"kv_heads", 2},
                                                           {"ffn", 32},
                                                           {"layers", 8},
                                                           {"batch", 1},
                                                           {"tokens", 4}}));
  std::unique_ptr<Model> model = make_model(spec, at::kCPU);
  Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  Trace trace = record_trace([this] { return model->loss(batch); });
};

Setup& setup() {
  static Setup instance;
  return instance;
}

void step(benchmark::State& state, const Checkpoint* checkpoint) {
  Setup& s = setup();
  for (auto _ : state) {
    if (checkpoint == nullptr) {
      s.model->loss(s.batch).backward();
    } else {
      Recording recording(*checkpoint);
      s.model->loss(s.batch).backward();
    }
  }
}

// Prints as usual and keeps every repetition, for the ratios.
class RatioReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration)
        samples_[run.run_name.function_name].push_back(run.GetAdjustedRealTime());
    }
  }
  void print() {
    const double base = median(samples_.at("none"));
    std::printf("%-28s %12s %10s\n", "variant", "step us", "over none");
    for (auto& [name, samples] : samples_) {
      const double time = median(samples);
      std::printf("%-28s %12.1f %10.3f\n", name.c_str(), time / 1e3, time / base);
    }
  }

 private:
  static double median(std::vector<double> samples) {
    std::nth_element(samples.begin(),
                     samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                     samples.end());
    return samples[samples.size() / 2];
  }
  std::map<std::string, std::vector<double>> samples_;
};

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (const char* flag :
       {"--benchmark_repetitions=25", "--benchmark_enable_random_interleaving=true",
        "--benchmark_min_time=0.02"}) {
    arguments.insert(arguments.begin() + 1, flag);
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  std::vector<std::unique_ptr<Checkpoint>> checkpoints;
  benchmark::RegisterBenchmark("none", [](benchmark::State& state) { step(state, nullptr); });
  for (const char* policy : {"full", "attn_only", "save_mm"}) {
    const Plan plan = value_or_exit(resolve(value_or_exit(parse_policy(policy)), setup().trace));
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      checkpoints.push_back(std::make_unique<Checkpoint>(plan, schedule));
      const Checkpoint* checkpoint = checkpoints.back().get();
      const std::string name = std::string(policy) + "/" + std::string(to_string(schedule));
      benchmark::RegisterBenchmark(
          name.c_str(), [checkpoint](benchmark::State& state) { step(state, checkpoint); });
    }
  }
  RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print();
  return 0;
}

}  // namespace
}  // namespace rematch

int main(int argc, char** argv) { return rematch::run(argc, argv); }
