#include "policies/search/mix/layer_mix.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "policies/search/mix/mix_jobs.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint32_t>(limit)); }

 private:
  std::mt19937 engine_;
};

struct Variety {
  int most_layers = 5;
  int num_lists = 2;
  bool segments = true;
  bool same_transient = false;
  bool offload = false;
};

// Offloads 0, 9 or 18 bytes, so that some options offload equally many. An option without a region
// (`passes_on`) offloads nothing.
void offload_some(Dice& dice, LayerOption& option) {
  option.transient_beside = {dice.below(static_cast<int>(option.transient.count) + 1)};
  option.passes_on = dice.below(3) == 0;
  if (option.passes_on) {
    option.transient_beside = option.transient;
  } else {
    option.offloaded = {9 * dice.below(3)};
  }
}

MixProblem random_problem(std::uint32_t seed, const Variety& variety) {
  Dice dice(seed);
  MixProblem problem;
  const int num_layers = 1 + dice.below(variety.most_layers);
  const int growth = dice.below(3) * dice.below(20);
  for (int layer = 0; layer < num_layers; ++layer) {
    problem.list_of_layer.push_back(dice.below(3) == 0 ? dice.below(variety.num_lists) : 0);
    problem.gradients.push_back({(num_layers - 1 - layer) * growth});
  }
  problem.head = {dice.below(80)};
  problem.floor = {dice.below(60)};
  for (int list = 0; list < variety.num_lists; ++list) {
    std::vector<LayerOption> options;
    const int same = dice.below(60);
    for (int option = 1 + dice.below(4); option > 0; --option) {
      const int held = dice.below(40);
      const Bytes transient = {variety.same_transient ? 40 + same : held + dice.below(60)};
      options.push_back(
          {Bytes{held}, transient, Bytes{dice.below(50)}, nanoseconds(dice.below(30)), 1});
    }
    if (variety.segments) {
      options.push_back({Bytes{dice.below(30)}, Bytes{dice.below(120)}, Bytes{dice.below(90)},
                         nanoseconds(dice.below(60)), 2 + dice.below(2)});
    }
    // A mix is invalid if its last region offloads. The first option never offloads, so there is
    // always a valid mix.
    options[0].transient_beside = options[0].transient;
    for (std::size_t i = 1; variety.offload && i < options.size(); ++i) {
      offload_some(dice, options[i]);
    }
    problem.lists.push_back(std::move(options));
  }
  return problem;
}

using Options = std::vector<const LayerOption*>;

// Returns the first option after `index` that has a region.
std::size_t next_region(const Options& options, std::size_t index) {
  std::size_t next = index + 1;
  while (next < options.size() && options[next]->passes_on) ++next;
  return next;
}

// Returns the most bytes on the device during the option's backward. Includes values that earlier
// options offload, if they are back on the device at that time.
std::int64_t with_offloaded(const Options& options, std::size_t index) {
  std::int64_t most = options[index]->transient.count;
  for (std::size_t before = 0; before < index; ++before) {
    const std::int64_t offloaded = options[before]->offloaded.count;
    const std::size_t next = next_region(options, before);
    if (offloaded == 0 || next < index) continue;
    const LayerOption& here = *options[index];
    const Bytes beside = next == index ? here.transient_beside : here.transient;
    most = std::max(most, beside.count + offloaded);
  }
  return most;
}

bool last_region_offloads(const Options& options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const bool is_last = !options[i]->passes_on && next_region(options, i) == options.size();
    if (is_last && options[i]->offloaded.count > 0) return true;
  }
  return false;
}

// Computes a step's bytes in the simplest way, moment by moment. Returns nullopt if the last region
// offloads, because no real step does so.
std::optional<std::int64_t> peak_by_timeline(const MixProblem& problem,
                                             const std::vector<int>& mix) {
  Options options;
  std::vector<int> last_layers;
  int layer = 0;
  for (int option : mix) {
    options.push_back(&problem.lists[problem.list_of_layer[layer]][option]);
    layer += options.back()->num_layers;
    last_layers.push_back(layer - 1);
  }
  if (last_region_offloads(options)) return std::nullopt;
  std::int64_t held = 0;
  std::int64_t peak = problem.floor.count;
  for (const LayerOption* option : options) {
    peak = std::max(peak, held + option->forward_transient.count);
    held += option->held.count;
  }
  peak = std::max(peak, held + problem.head.count);
  for (std::size_t i = options.size(); i-- > 0;) {
    held -= options[i]->held.count;
    peak =
        std::max(peak, held + with_offloaded(options, i) + problem.gradients[last_layers[i]].count);
  }
  return peak;
}

void for_every_mix(const MixProblem& problem,
                   const std::function<void(const std::vector<int>&, std::int64_t)>& visit) {
  std::vector<int> mix;
  const int num_layers = static_cast<int>(problem.list_of_layer.size());
  const std::function<void(int, std::int64_t)> go = [&](int layer, std::int64_t time) {
    if (layer == num_layers) return visit(mix, time);
    const int list = problem.list_of_layer[layer];
    for (std::size_t option = 0; option < problem.lists[list].size(); ++option) {
      const LayerOption& tried = problem.lists[list][option];
      const int end = layer + tried.num_layers;
      if (end > num_layers ||
          std::any_of(problem.list_of_layer.begin() + layer, problem.list_of_layer.begin() + end,
                      [&](int other) { return other != list; })) {
        continue;
      }
      mix.push_back(static_cast<int>(option));
      go(end, time + tried.time.count());
      mix.pop_back();
    }
  };
  go(0, 0);
}

// Returns the same problem without offloaded bytes.
MixProblem held_alone(MixProblem problem) {
  for (auto& list : problem.lists) {
    for (LayerOption& option : list) option.offloaded = {};
  }
  return problem;
}

using Front = std::vector<std::pair<std::int64_t, std::int64_t>>;

Front all_mixes(const MixProblem& problem) {
  std::map<std::int64_t, std::int64_t> fastest;  // least time, keyed by peak
  for_every_mix(problem, [&](const std::vector<int>& mix, std::int64_t time) {
    const std::optional<std::int64_t> peak = peak_by_timeline(problem, mix);
    if (!peak) return;
    const auto [found, is_new] = fastest.try_emplace(*peak, time);
    found->second = std::min(found->second, time);
  });
  Front front;
  for (const auto& [peak, time] : fastest) {
    if (front.empty() || time < front.back().second) front.emplace_back(peak, time);
  }
  return front;
}

Front front_of(const MixFront& mixed) {
  Front front;
  for (const LayerMix& mix : mixed.points) front.emplace_back(mix.peak.count, mix.time.count());
  return front;
}

std::int64_t time_of(const MixProblem& problem, const std::vector<int>& mix) {
  std::int64_t time = 0;
  int layer = 0;
  for (int option : mix) {
    const MixJob job = make_job(problem, layer, option);
    time += job.time;
    layer += job.num_layers;
  }
  return time;
}

TEST_CASE("the front of mixes equals the front of all assignments") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(2000); ++seed) {
    CAPTURE(seed);
    const MixProblem problem = random_problem(seed, {5, 2, seed % 2 == 0, seed % 3 == 0});
    const MixFront found = mix_layers(problem);
    CHECK(found.time_gap.count() == 0);
    CHECK(front_of(found) == all_mixes(problem));
    for (const LayerMix& mix : found.points) {
      CHECK(peak_by_timeline(problem, mix.options) == mix.peak.count);
      CHECK(peak_of_mix(problem, mix.options).value() == mix.peak);
      CHECK(time_of(problem, mix.options) == mix.time.count());
    }
  }
}

TEST_CASE("the front of offloading mixes equals the front of all assignments") {
  int num_offloading = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(2000); ++seed) {
    CAPTURE(seed);
    const MixProblem problem =
        random_problem(seed, {5, 2, seed % 2 == 0, seed % 3 == 0, /*offload=*/true});
    const MixFront found = mix_layers(problem);
    const Front all = all_mixes(problem);
    CHECK(front_of(found) == all);
    for (const LayerMix& mix : found.points) {
      CHECK(peak_by_timeline(problem, mix.options) == mix.peak.count);
      CHECK(peak_of_mix(problem, mix.options) == mix.peak);
      const LayerMix ordered = in_readable_order(problem, mix);
      CHECK(peak_by_timeline(problem, ordered.options).value() <= mix.peak.count);
      CHECK(time_of(problem, ordered.options) == mix.time.count());
      num_offloading +=
          peak_of_mix(problem, mix.options) > peak_of_mix(held_alone(problem), mix.options);
    }
    const std::vector<BoundCorner> bound = mix_lower_bound(problem);
    for (const auto& [peak, time] : all) CHECK(bound_at(bound, {peak}).count() <= time);
  }
  CHECK(num_offloading > 20);  // in these mixes, offloaded values raise the peak when they return
}

TEST_CASE(
    "no mix of options is below the bound, and the bound ends at the time of the fastest mix") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(2000); ++seed) {
    CAPTURE(seed);
    const MixProblem problem = random_problem(seed, {});
    const std::vector<BoundCorner> bound = mix_lower_bound(problem);
    const Front front = all_mixes(problem);
    CHECK(static_cast<std::int64_t>(bound.front().peak_bytes) <= front.front().first);
    for (const auto& [peak, time] : front) {
      CHECK(bound_at(bound, {peak}).count() <= time);
    }
    CHECK(bound_at(bound, {front.back().first + 1000}).count() == front.back().second);
  }
}

TEST_CASE("a front with a limited number of points reports a bound on the time that it loses") {
  int num_gaps = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(200); ++seed) {
    CAPTURE(seed);
    const MixProblem problem = random_problem(seed, {6, 2, true, false});
    const MixFront found = mix_layers(problem, /*max_labels=*/3);
    if (found.time_gap.count() > 0) ++num_gaps;
    for (const auto& [peak, time] : all_mixes(problem)) {
      CHECK(std::any_of(found.points.begin(), found.points.end(), [&](const LayerMix& mix) {
        return mix.peak.count <= peak && mix.time.count() <= time + found.time_gap.count();
      }));
    }
  }
  CHECK(num_gaps > 0);
}

TEST_CASE("mix_layers() reports its progress after every layer, in order") {
  const MixProblem problem = random_problem(/*seed=*/1, {6, 2, true, false});
  std::vector<std::pair<int, int>> reported;
  mix_layers(problem, kMaxMixLabels, {.stop = {}, .on_layer = [&](int done, int total) {
                                        reported.emplace_back(done, total);
                                      }});
  const int num_layers = static_cast<int>(problem.list_of_layer.size());
  REQUIRE(reported.size() == problem.list_of_layer.size());
  for (int layer = 0; layer < num_layers; ++layer) {
    CHECK(reported[layer] == std::pair(layer + 1, num_layers));
  }
}

TEST_CASE("in_readable_order() finds the order of layers with the lowest peak") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(2000); ++seed) {
    CAPTURE(seed);
    MixProblem problem = random_problem(seed, {6, 1, seed % 2 == 0, false});
    for (LayerOption& option : problem.lists[0]) option.forward_transient = {};
    problem.floor = {};
    std::vector<int> mix = mix_layers(problem).points[0].options;
    Dice dice(seed + 1);
    int layer = 0;
    for (int& option : mix) {  // replaces some options by options with the same number of layers
      const int other = dice.below(static_cast<int>(problem.lists[0].size()));
      const int same = problem.lists[0][option].num_layers;
      if (problem.lists[0][other].num_layers == same) option = other;
      layer += same;
    }
    std::vector<int> permuted = mix;
    std::sort(permuted.begin(), permuted.end());
    Bytes lowest = peak_of_mix(problem, permuted).value();
    do {
      lowest = std::min(lowest, peak_of_mix(problem, permuted).value());
    } while (std::next_permutation(permuted.begin(), permuted.end()));
    const LayerMix given{peak_of_mix(problem, mix).value(), nanoseconds(time_of(problem, mix)),
                         mix};
    const LayerMix ordered = in_readable_order(problem, given);
    CHECK(ordered.peak == lowest);
    CHECK(peak_of_mix(problem, ordered.options).value() == lowest);
    CHECK(time_of(problem, ordered.options) == given.time.count());
  }
}

TEST_CASE("in_readable_order() never raises the peak, even with several kinds of layers") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(200); ++seed) {
    CAPTURE(seed);
    const MixProblem problem = random_problem(seed, {6, 2, true, false});
    for (const LayerMix& mix : mix_layers(problem).points) {
      const LayerMix ordered = in_readable_order(problem, mix);
      CHECK(peak_by_timeline(problem, ordered.options) == ordered.peak.count);
      CHECK(ordered.peak <= mix.peak);
      CHECK(time_of(problem, ordered.options) == mix.time.count());
    }
  }
}

// There are three layers. A kept layer holds 10 bytes. A recomputed layer holds 1 byte and takes 5
// ns. Either needs 12 bytes in its backward. If all layers are recomputed, the peak is 1 + 1 + 12 =
// 14, and the head needs only 3 + 2 = 5. The last layer can be kept at the same peak, because its
// 10 bytes are part of its own 12.
TEST_CASE("the last layer is never recomputed unless the head determines the peak") {
  MixProblem problem;
  problem.lists = {{{Bytes{10}, Bytes{12}, {}, nanoseconds(0), 1},
                    {Bytes{1}, Bytes{12}, {}, nanoseconds(5), 1}}};
  problem.list_of_layer = {0, 0, 0};
  problem.head = {2};
  const MixFront free_last = mix_layers(problem);
  CHECK(free_last.points.front().peak == Bytes{14});
  CHECK(free_last.points.front().options == std::vector<int>{1, 1, 0});
  // {1, 1, 1} has the peak 1 + 1 + 1 + 11 = 14, and {1, 1, 0} has 1 + 1 + 10 + 11 = 23
  problem.head = {11};
  CHECK(mix_layers(problem).points.front().options == std::vector<int>{1, 1, 1});
}

// A region of two layers holds one byte for both layers, and needs 20 bytes because it recomputes
// both at once. The head needs more than 20 bytes in any case.
TEST_CASE("a larger recompute working set is free if the head determines the peak") {
  MixProblem problem;
  problem.lists = {{{Bytes{1}, Bytes{12}, {}, nanoseconds(5), 1},
                    {Bytes{1}, Bytes{20}, {}, nanoseconds(10), 2}}};
  problem.list_of_layer = {0, 0};
  problem.head = {50};
  const MixFront front = mix_layers(problem);
  REQUIRE(front.points.size() == 1);
  CHECK(front.points[0].options == std::vector<int>{1});
  CHECK(front.points[0].peak == Bytes{51});
}

TEST_CASE("options on the convex hull include both ends and lose little time") {
  std::vector<LayerOption> options = {{Bytes{0}, Bytes{10}, {}, nanoseconds(100), 1},
                                      {Bytes{5}, Bytes{10}, {}, nanoseconds(60), 1},
                                      {Bytes{6}, Bytes{10}, {}, nanoseconds(50), 1},
                                      {Bytes{20}, Bytes{10}, {}, nanoseconds(0), 1}};
  // At 5 bytes, the line from (0, 100) to (6, 50) is at 58.3 ns. The option with 60 ns is above the
  // line, so it is dropped.
  CHECK(hull_options(options) == std::vector<std::size_t>{0, 2, 3});
}

}  // namespace
}  // namespace rematch
