#include "policies/search/simple/simple_form.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/search/front/hypervolume.h"
#include "policies/search/front/plan_builder.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/simple/simple_rules.h"

namespace rematch {

// A plan of the simple form: one rule for the first layers, and another rule for the remaining
// layers.
struct SimpleMix {
  Bytes peak;
  std::chrono::nanoseconds time{};
  int first_rule = 0;
  int second_rule = 0;
  int num_first = 0;  // number of modules with the first rule
};

namespace {

using std::chrono::nanoseconds;

// The maximum number of rules that are combined with each other. Every pair of rules is tried with
// every layer at which the second rule may begin.
constexpr std::size_t kMaxPaired = 64;

PlanePoint sums_on_plane(const SimpleMix& mix) { return {mix.peak.count, mix.time.count()}; }

// Replaces the times of equal layers by their mean, because one rule applies to all of them.
OpTimes mean_times(const Trace& trace, const OpTimes& times) {
  // keyed by the names of a block's ops
  std::map<std::vector<std::string_view>, std::vector<OpId>> starts;
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    std::vector<std::string_view> names = {block.list};
    for (const OpId op : IdRange(scope.first_op, scope.end_op)) names.push_back(trace.ops[op].name);
    starts[std::move(names)].push_back(scope.first_op);
  }
  OpTimes mean = times;
  for (const auto& [names, first_ops] : starts) {
    for (int op = 0; op + 1 < static_cast<int>(names.size()); ++op) {
      nanoseconds sum{};
      for (const OpId first : first_ops) sum += times[first + op];
      sum /= static_cast<int>(first_ops.size());
      for (const OpId first : first_ops) mean[first + op] = sum;
    }
  }
  return mean;
}

}  // namespace

// All pairs of rules for a trace. The plan of a pair is simulated only when a caller needs its
// figures.
struct SimpleSearch::Plans {
  Plans(const Trace& whole_trace, const Profile& its_profile, const SearchSpace& its_space)
      : profile(its_profile),
        space(its_space),
        judge({{whole_trace, profile, std::nullopt}}, space),
        trace(judge.trace(0)),
        times(mean_times(trace, profile.forward)),
        map(make_spans(trace, times)),
        modules(modules_of(trace, map)),
        rules(simple_rules({trace, map, times, space}, kMaxPaired)),
        problem(mix_problem(map, rules.options)),
        builder(whole_trace, profile.trace_sha256, map, rules.options, space),
        mixes(paired_mixes()),
        uniform(uniform_mixes()) {}

  const FrontPoint& point(const SimpleMix& mix) {
    const auto [found, is_new] =
        judged.try_emplace({mix.first_rule, mix.second_rule, mix.num_first});
    if (is_new) found->second = judge.judge(builder.build(choices(mix), "simple"));
    return found->second;
  }

  // Numbers the modules that blocks run, in the order in which they first run. Returns the module
  // of each span. All runs of a module have the same number and thus the same rule.
  static std::vector<OptionalIndex> modules_of(const Trace& trace, const SpanMap& map) {
    std::map<std::string_view, int> known;
    std::vector<OptionalIndex> modules;
    for (const Span& span : map.spans) {
      OptionalIndex& module = modules.emplace_back();
      if (!span.is_block()) continue;
      const auto next = static_cast<int>(known.size());
      module = known.try_emplace(trace.scopes[*span.scope].path, next).first->second;
    }
    return modules;
  }

  int num_modules() const {
    int num = 0;
    for (const OptionalIndex module : modules)
      num = std::max(num, module.has_value() ? *module + 1 : 0);
    return num;
  }

  int num_rules() const {
    std::size_t most = 0;
    for (const auto& list : rules.options.lists) most = std::max(most, list.size());
    return static_cast<int>(most);
  }

  // Returns the option of each span. Option 0 is the only option of a span between blocks.
  std::vector<int> choices(const SimpleMix& mix) const {
    std::vector<int> chosen;
    for (const OptionalIndex module : modules) {
      chosen.push_back(!module.has_value()       ? 0
                       : *module < mix.num_first ? mix.first_rule
                                                 : mix.second_rule);
    }
    return chosen;
  }

  SimpleMix weighed(SimpleMix mix) const {
    const std::vector<int> chosen = choices(mix);
    // peak_of_mix() returns nullopt only if a rule offloads, and no rule does
    mix.peak = peak_of_mix(problem, chosen).value();
    mix.time = {};
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto& list = problem.lists[static_cast<std::size_t>(problem.list_of_layer[i])];
      mix.time += list[static_cast<std::size_t>(chosen[i])].time;
    }
    return mix;
  }

  std::vector<SimpleMix> uniform_mixes() const {
    std::vector<SimpleMix> found;
    for (int rule = 0; rule < num_rules(); ++rule) found.push_back(weighed(all_layers(rule)));
    std::stable_sort(found.begin(), found.end(),
                     [](const SimpleMix& a, const SimpleMix& b) { return a.time < b.time; });
    return found;
  }

  SimpleMix all_layers(int rule) const { return {{}, {}, rule, rule, num_modules()}; }

  std::vector<SimpleMix> paired_mixes() const {
    std::vector<SimpleMix> found;
    const int modules_in_all = num_modules();
    for (int first = 0; first < rules.num_paired; ++first) {
      found.push_back(weighed(all_layers(first)));
      for (int second = 0; second < rules.num_paired && !space.is_stopped(); ++second) {
        if (second == first) continue;
        for (int count = 1; count < modules_in_all; ++count) {
          found.push_back(weighed({{}, {}, first, second, count}));
        }
      }
      found = undominated(std::move(found), sums_on_plane);
    }
    return found;
  }

  const Profile& profile;
  SearchSpace space;
  PointJudge judge;
  const Trace& trace;  // trace of one rank
  OpTimes times;
  SpanMap map;
  std::vector<OptionalIndex> modules;  // indexed by span; absent between blocks
  SimpleRules rules;
  MixProblem problem;
  PlanBuilder builder;
  std::vector<SimpleMix> mixes;
  std::vector<SimpleMix> uniform;  // every rule applied to all layers; sorted by ascending time
  // keyed by first rule, second rule and number of modules under the first rule
  std::map<std::tuple<int, int, int>, FrontPoint> judged;
};

SimpleSearch::SimpleSearch(const Trace& trace, const Profile& profile, const SearchSpace& space) {
  if (const auto problem = profile_problem(profile, trace)) throw std::invalid_argument(*problem);
  plans_ = std::make_unique<Plans>(trace, profile, space);
}

SimpleSearch::~SimpleSearch() = default;

// The peak of a mix is an estimate, so the peak of its plan may be on the other side of the limit.
// The few mixes with the same rule for all layers are all simulated.
std::optional<FrontPoint> SimpleSearch::fastest_within(Bytes peak) {
  constexpr int kMaxTried = 64;
  const std::vector<SimpleMix>& mixes = plans_->mixes;
  const Bytes activations = peak - plans_->judge.before();
  auto end = std::partition_point(mixes.begin(), mixes.end(),
                                  [&](const SimpleMix& mix) { return mix.peak <= activations; });
  std::optional<FrontPoint> best;
  for (int tried = 0; !best && end != mixes.begin() && tried < kMaxTried; ++tried) {
    const FrontPoint& point = plans_->point(*--end);
    if (point.figures.peak <= peak) best = point;
  }
  for (const SimpleMix& mix : plans_->uniform) {
    const FrontPoint& point = plans_->point(mix);
    if (best && best->step_time <= point.step_time) break;
    if (point.figures.peak <= peak) best = point;
  }
  if (best) plans_->judge.add_words(*best);
  return best;
}

FrontPoint SimpleSearch::lowest() {
  FrontPoint lowest = plans_->point(plans_->mixes.front());
  for (const SimpleMix& mix : plans_->uniform) {
    const FrontPoint& point = plans_->point(mix);
    if (point.figures.peak < lowest.figures.peak) lowest = point;
  }
  plans_->judge.add_words(lowest);
  return lowest;
}

std::optional<FrontPoint> SimpleSearch::lowest_within(nanoseconds step_time) {
  constexpr int kMaxTried = 8;
  const nanoseconds extra = step_time - plans_->profile.step_time();
  const std::vector<SimpleMix>& mixes = plans_->mixes;
  auto next = std::partition_point(mixes.begin(), mixes.end(),
                                   [&](const SimpleMix& mix) { return mix.time > extra; });
  std::optional<FrontPoint> lowest;
  const auto consider = [&](const SimpleMix& mix) {
    const FrontPoint& point = plans_->point(mix);
    if (!lowest || point.figures.peak < lowest->figures.peak) lowest = point;
  };
  for (int tried = 0; next != mixes.end() && tried < kMaxTried; ++tried) consider(*next++);
  for (const SimpleMix& mix : plans_->uniform) {
    if (mix.time > extra) break;
    consider(mix);
  }
  if (lowest) plans_->judge.add_words(*lowest);
  return lowest;
}

}  // namespace rematch
