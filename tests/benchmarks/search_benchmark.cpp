// Times searches on one core, from a trace and a profile to a front, and reports their peak memory.
// llama3_8b, with 16 to 160 layers, is searched under whole_region, under on_demand, and with only
// the options on the convex hull. Another model has 80 layers of three kinds.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <ctime>
#include <string>
#include <vector>

#include "policies/predict/device/roofline.h"
#include "policies/search/front/front_search.h"
#include "tests/benchmarks/rows.h"
#include "tests/support/toy_trace.h"

namespace rematch::benchmarks {
namespace {

constexpr int kNumSearches = 5;
constexpr int kTargetLayers = 80;
constexpr std::size_t kPoints = 16;

enum class Kind : std::uint8_t { kConstantTransient, kGeneral, kHull, kThreeKinds };

struct Way {
  const char* name;
  double limit_seconds;  // limit for a model of kTargetLayers layers
};

Way way_of(Kind kind) {
  switch (kind) {
    case Kind::kConstantTransient:
      return {"constant transient", 2};
    case Kind::kGeneral:
      return {"general labels", 10};
    case Kind::kHull:
      return {"hull only", 0.3};
    case Kind::kThreeKinds:
      return {"three kinds of block", 10};
  }
  return {};
}

SearchSpace space_of(Kind kind) {
  SearchSpace space;
  if (kind == Kind::kConstantTransient) space.schedule = Schedule::kWholeRegion;
  if (kind == Kind::kHull) space.reach = Reach::kHull;
  return space;
}

// The blocks of llama3_8b over 8,192 tokens. They have the ops of llama3_8b, but without
// grouped-query attention.
Trace trace_of(Kind kind, int layers) {
  testing::ToySizes sizes;
  sizes.layers = layers;
  sizes.tokens = 8'192;
  sizes.dim = 4'096;
  sizes.heads = 32;
  sizes.ffn = 14'336;
  sizes.vocab = 128'256;
  return kind == Kind::kThreeKinds ? testing::toy_three_kinds(sizes) : testing::toy_llama(sizes);
}

void search(benchmark::State& state, Kind kind) {
  const int layers = static_cast<int>(state.range(0));
  const Trace trace = trace_of(kind, layers);
  const Profile profile = roofline_profile(trace, *find_device_sheet("h100"));
  std::vector<double> seconds;
  std::size_t num_plans = 0;
  for (auto _ : state) {
    const std::clock_t start = std::clock();  // CPU time of this process only
    FrontSearch found(trace, profile, space_of(kind));
    const Front front = found.front(kPoints, {});
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    num_plans = front.num_plans_found;
  }
  const Way way = way_of(kind);
  Row row{"search", std::to_string(layers) + " layers, " + way.name, "s", {}, {}, {}};
  row.measured = median_over_rounds({seconds});
  if (layers == kTargetLayers) row.limit = way.limit_seconds;
  row.note = std::to_string(num_plans) + " plans";
  add_row(row);
}

void memory(benchmark::State& state) {
  for (auto _ : state) {
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr double kKibibytesInMebibyte = 1024;
  constexpr double kLimitMebibytes = 1024;
  const double mebibytes = static_cast<double>(usage.ru_maxrss) / kKibibytesInMebibyte;
  add_row({"search", "peak memory of all searches", "MiB", {mebibytes, {}}, kLimitMebibytes, {}});
}

void add_search(const char* name, Kind kind, const std::vector<int>& layers) {
  auto* added =
      benchmark::RegisterBenchmark(name, [kind](benchmark::State& state) { search(state, kind); });
  for (int count : layers) added->Arg(count);
  added->Iterations(kNumSearches)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  using rematch::benchmarks::Kind;
  const std::vector<int> growth = {16, 32, 80, 160};
  rematch::benchmarks::add_search("constant_transient", Kind::kConstantTransient, growth);
  rematch::benchmarks::add_search("general", Kind::kGeneral, growth);
  rematch::benchmarks::add_search("hull", Kind::kHull, growth);
  rematch::benchmarks::add_search("three_kinds", Kind::kThreeKinds, growth);
  benchmark::RegisterBenchmark("memory", rematch::benchmarks::memory)->Iterations(1);
  return rematch::benchmarks::run_benchmarks(argc, argv);
}
