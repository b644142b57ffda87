#include "policies/search/front/simple_form.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/search/front/plan_builder.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/front/simple_rules.h"

namespace rematch {

// Two groups of layers, weighed by sums.
struct SimpleMix {
  Bytes peak;
  std::chrono::nanoseconds time{};
  int first_rule = 0;
  int second_rule = 0;
  int num_first = 0;  // blocks under the first rule
};

namespace {

using std::chrono::nanoseconds;

// Rules in pairs, each with every place where the first ends, are weighed by their sums.
constexpr std::size_t kMostPaired = 64;

// No other has at most the peak and the time; by peak, ascending.
std::vector<SimpleMix> undominated_mixes(std::vector<SimpleMix> mixes) {
  std::stable_sort(mixes.begin(), mixes.end(), [](const SimpleMix& a, const SimpleMix& b) {
    return a.peak != b.peak ? a.peak < b.peak : a.time < b.time;
  });
  std::vector<SimpleMix> kept;
  for (const SimpleMix& mix : mixes) {
    if (kept.empty() || mix.time < kept.back().time) kept.push_back(mix);
  }
  return kept;
}

// Equal layers take equal times: what was measured of each differs, and one rule is for all.
OpTimes mean_times(const Trace& trace, const OpTimes& times) {
  std::map<std::vector<std::string_view>, std::vector<OpId>> starts;  // by names of a block's ops
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

class SimpleSearch::Plans {
 public:
  Plans(const Trace& trace, const Profile& profile, const SearchSpace& space)
      : profile_(profile),
        space_(space),
        judge_(trace, profile_, space_),
        trace_(judge_.trace()),
        times_(mean_times(trace_, profile.forward)),
        map_(make_spans(trace_, times_)),
        rules_(simple_rules(trace_, map_, times_, space, kMostPaired)),
        problem_(mix_problem(map_, rules_.options)),
        builder_(trace, map_, rules_.options, space) {
    mixes_ = undominated_mixes(paired_mixes());
    uniform_ = uniform_mixes();
  }

  const std::vector<SimpleMix>& mixes() const { return mixes_; }
  Bytes before() const { return judge_.before(); }
  nanoseconds least_time() const { return profile_.step_time(); }

  const FrontPoint& point(const SimpleMix& mix) {
    const auto [found, is_new] =
        judged_.try_emplace({mix.first_rule, mix.second_rule, mix.num_first});
    if (is_new) found->second = judge_.judge(builder_.build(choices(mix), "simple"));
    return found->second;
  }

  FrontPoint in_words(FrontPoint point) const { return judge_.in_words(std::move(point)); }

  // One rule for all layers, every rule; by time, ascending.
  const std::vector<SimpleMix>& uniform() const { return uniform_; }

 private:
  int num_blocks() const {
    return static_cast<int>(std::count_if(map_.spans.begin(), map_.spans.end(),
                                          [](const Span& span) { return span.is_block(); }));
  }

  int num_rules() const {
    std::size_t most = 0;
    for (const auto& list : rules_.options.lists) most = std::max(most, list.size());
    return static_cast<int>(most);
  }

  // The option of each span; what lies between blocks has one.
  std::vector<int> choices(const SimpleMix& mix) const {
    std::vector<int> chosen;
    int block = 0;
    for (const Span& span : map_.spans) {
      chosen.push_back(!span.is_block()        ? 0
                       : block < mix.num_first ? mix.first_rule
                                               : mix.second_rule);
      block += span.is_block() ? 1 : 0;
    }
    return chosen;
  }

  SimpleMix weighed(SimpleMix mix) const {
    const std::vector<int> chosen = choices(mix);
    mix.peak = peak_of_mix(problem_, chosen).value();  // no rule offloads
    mix.time = {};
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto& list = problem_.lists[static_cast<std::size_t>(problem_.list_of_layer[i])];
      mix.time += list[static_cast<std::size_t>(chosen[i])].time;
    }
    return mix;
  }

  std::vector<SimpleMix> uniform_mixes() const {
    std::vector<SimpleMix> mixes;
    for (int rule = 0; rule < num_rules(); ++rule) mixes.push_back(weighed(all_layers(rule)));
    std::stable_sort(mixes.begin(), mixes.end(),
                     [](const SimpleMix& a, const SimpleMix& b) { return a.time < b.time; });
    return mixes;
  }

  SimpleMix all_layers(int rule) const { return {{}, {}, rule, rule, num_blocks()}; }

  std::vector<SimpleMix> paired_mixes() const {
    std::vector<SimpleMix> mixes;
    const int blocks = num_blocks();
    for (int first = 0; first < rules_.num_paired; ++first) {
      mixes.push_back(weighed(all_layers(first)));
      for (int second = 0; second < rules_.num_paired && !space_.is_stopped(); ++second) {
        if (second == first) continue;
        for (int count = 1; count < blocks; ++count) {
          mixes.push_back(weighed({{}, {}, first, second, count}));
        }
      }
      mixes = undominated_mixes(std::move(mixes));
    }
    return mixes;
  }

  const Profile& profile_;
  SearchSpace space_;
  PointJudge judge_;
  const Trace& trace_;  // of one rank
  OpTimes times_;
  SpanMap map_;
  SimpleRules rules_;
  MixProblem problem_;
  PlanBuilder builder_;
  std::vector<SimpleMix> mixes_;
  std::vector<SimpleMix> uniform_;
  std::map<std::tuple<int, int, int>, FrontPoint> judged_;  // by rules and place
};

SimpleSearch::SimpleSearch(const Trace& trace, const Profile& profile, const SearchSpace& space) {
  if (const auto problem = profile_problem(profile, trace)) throw std::invalid_argument(*problem);
  plans_ = std::make_unique<Plans>(trace, profile, space);
}

SimpleSearch::~SimpleSearch() = default;

// Sums leave out what only the whole step shows, so that one near the limit may exceed it, and one
// that seemed worse may not: rules for all layers are few, and are played whatever their sums say.
std::optional<FrontPoint> SimpleSearch::fastest_within(Bytes peak) {
  constexpr int kMostTried = 64;
  const std::vector<SimpleMix>& mixes = plans_->mixes();
  const Bytes activations = peak - plans_->before();
  auto end = std::partition_point(mixes.begin(), mixes.end(),
                                  [&](const SimpleMix& mix) { return mix.peak <= activations; });
  std::optional<FrontPoint> best;
  for (int tried = 0; !best && end != mixes.begin() && tried < kMostTried; ++tried) {
    const FrontPoint& point = plans_->point(*--end);
    if (point.figures.peak <= peak) best = point;
  }
  for (const SimpleMix& mix : plans_->uniform()) {
    const FrontPoint& point = plans_->point(mix);
    if (best && best->step_time <= point.step_time) break;
    if (point.figures.peak <= peak) best = point;
  }
  if (best) best = plans_->in_words(*std::move(best));
  return best;
}

FrontPoint SimpleSearch::lowest() {
  FrontPoint lowest = plans_->point(plans_->mixes().front());
  for (const SimpleMix& mix : plans_->uniform()) {
    const FrontPoint& point = plans_->point(mix);
    if (point.figures.peak < lowest.figures.peak) lowest = point;
  }
  return plans_->in_words(std::move(lowest));
}

std::optional<FrontPoint> SimpleSearch::lowest_within(nanoseconds step_time) {
  constexpr int kMostTried = 8;
  const nanoseconds extra = step_time - plans_->least_time();
  const std::vector<SimpleMix>& mixes = plans_->mixes();
  auto next = std::partition_point(mixes.begin(), mixes.end(),
                                   [&](const SimpleMix& mix) { return mix.time > extra; });
  std::optional<FrontPoint> lowest;
  const auto consider = [&](const SimpleMix& mix) {
    const FrontPoint& point = plans_->point(mix);
    if (!lowest || point.figures.peak < lowest->figures.peak) lowest = point;
  };
  for (int tried = 0; next != mixes.end() && tried < kMostTried; ++tried) consider(*next++);
  for (const SimpleMix& mix : plans_->uniform()) {
    if (mix.time > extra) break;
    consider(mix);
  }
  if (lowest) lowest = plans_->in_words(*std::move(lowest));
  return lowest;
}

}  // namespace rematch
