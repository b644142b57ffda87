#include "policies/search/simple/simple_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/search/region/save_sets.h"
#include "policies/search/region/span_pricing.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// The maximum number of ops for which all subsets are tried. Eight is enough for two matmuls of a
// feed-forward, attention and four projections.
constexpr std::size_t kMaxSaved = 8;

// A rule for layers: which regions a layer has, and which ops it saves.
struct SimpleRule {
  // false: the layer is not checkpointed, so autograd keeps all its saved tensors
  bool is_checkpointed = false;
  std::vector<std::string> modules;  // scopes directly inside a block; empty: the whole block
  // names of ops, such as "attention::aten::mm#2", with scopes relative to the block
  std::vector<std::string> saves;
};

struct RuleFigures {
  SimpleRule rule;
  std::vector<SpanOption> by_kind;
};

// Returns whether, in every kind of block, the held bytes, transient and time of `a` are at most
// those of `b`.
bool is_no_worse(const RuleFigures& a, const RuleFigures& b) {
  return std::equal(a.by_kind.begin(), a.by_kind.end(), b.by_kind.begin(),
                    [](const SpanOption& of_a, const SpanOption& of_b) {
                      const LayerOption& x = of_a.figures;
                      const LayerOption& y = of_b.figures;
                      return x.held <= y.held && x.transient <= y.transient && x.time <= y.time;
                    });
}

nanoseconds total_time(const RuleFigures& rule) {
  nanoseconds time{};
  for (const SpanOption& option : rule.by_kind) time += option.figures.time;
  return time;
}

class RuleMaker {
 public:
  explicit RuleMaker(const SearchedTrace& searched)
      : trace_(searched.trace),
        map_(searched.map),
        times_(searched.times),
        space_(searched.space),
        times_opened_(times_opened(trace_)) {
    for (const int span : map_.first_of_kind) pricers_.emplace_back(searched, span, 1);
  }

  SimpleRules run(std::size_t most_paired) {
    find_candidates();
    add({});
    add({true, {}, {}});
    for (const std::vector<std::string>& modules : choices_of_modules()) add_lists(modules);
    keep_best(most_paired);
    SimpleRules rules;
    rules.num_paired = static_cast<int>(num_paired_);
    SpanOptions& options = rules.options;
    options.lists.resize(pricers_.size());
    options.gaps.resize(pricers_.size());
    for (std::size_t kind = 0; kind < pricers_.size(); ++kind) {
      for (const RuleFigures& rule : rules_) options.lists[kind].push_back(rule.by_kind[kind]);
      if (!is_block(kind)) options.lists[kind].resize(1);
    }
    return rules;
  }

 private:
  bool is_block(std::size_t kind) const { return span_of(kind).is_block(); }
  const Span& span_of(std::size_t kind) const {
    return map_.spans[static_cast<std::size_t>(map_.first_of_kind[kind])];
  }

  // Returns a name for each op, such as "attention::aten::mm#2" for the second aten::mm in the
  // scope `attention` of the block.
  std::vector<std::string> names_of_ops(std::size_t kind) const {
    const Span& block = span_of(kind);
    const std::string& path = trace_.scopes[*block.scope].path;
    std::map<std::string, int> seen;
    std::vector<std::string> names;
    for (const OpId id : block.range.ids()) {
      const TracedOp& op = trace_.ops[id];
      const std::string& scope = trace_.scopes[*op.scope].path;
      std::string name =
          (scope.size() > path.size() ? scope.substr(path.size() + 1) : "") + "::" + op.name;
      const int nth = ++seen[name];
      names.push_back(std::move(name.append("#").append(std::to_string(nth))));
    }
    return names;
  }

  struct Worth {
    nanoseconds time{};
    Bytes bytes;
    bool is_heavy = false;  // true for a matmul or attention, which people usually list
  };

  // Returns the ops that may appear in a save list, by name: ops whose results backward or
  // recompute reads, except views and casts.
  std::map<std::string, Worth> savable() {
    std::map<std::string, Worth> found;
    names_.resize(pricers_.size());
    for (std::size_t kind = 0; kind < pricers_.size(); ++kind) {
      if (!is_block(kind)) continue;
      names_[kind] = names_of_ops(kind);
      const LocalRange whole = pricers_[kind].whole();
      const RegionGraph& graph = pricers_[kind].graph(whole);
      const SaveSetCosts costs = pricers_[kind].costs(whole);
      for (const int op : savable_ops(graph, costs)) {
        const OpId id = span_of(kind).range.first + op;
        const TracedOp& traced = trace_.ops[id];
        if (traced.is_view || traced.op_class == OpClass::kCopy) continue;
        Worth& worth = found[names_[kind][static_cast<std::size_t>(op)]];
        worth.time += times_[id];
        worth.is_heavy |=
            traced.op_class == OpClass::kMatmul || traced.op_class == OpClass::kAttentionForward;
        for (const ValueId output : traced.outputs) {
          const TracedValue& value = trace_.values[output];
          worth.bytes += trace_.storages[value.storage].bytes;
        }
      }
    }
    return found;
  }

  // Returns the name without its number: "attention::aten::mm" for "attention::aten::mm#2". Drops
  // the scope too if `has_scope` is false.
  static std::string group_of(const std::string& name, bool has_scope) {
    const std::string all = name.substr(0, name.rfind('#'));
    return has_scope ? all : all.substr(all.find("::") + 2);
  }

  // Finds the ops that may appear in save lists. Starts with matmuls and attention, grouped by
  // scope if there are too many. Then adds ops, beginning with the longest time per byte.
  void find_candidates() {
    const std::map<std::string, Worth> found = savable();
    std::vector<std::pair<double, std::string>> by_worth;
    for (const auto& [name, worth] : found) {
      if (worth.is_heavy) {
        candidates_.push_back({name});
      } else {
        by_worth.emplace_back(
            -static_cast<double>(worth.time.count()) / static_cast<double>(worth.bytes.count + 1),
            name);
      }
    }
    for (const bool has_scope : {true, false}) {
      if (candidates_.size() <= kMaxSaved) break;
      std::map<std::string, std::vector<std::string>> groups;
      for (const std::vector<std::string>& names : candidates_) {
        for (const std::string& name : names) groups[group_of(name, has_scope)].push_back(name);
      }
      candidates_.clear();
      for (auto& [group, names] : groups) candidates_.push_back(std::move(names));
    }
    std::sort(by_worth.begin(), by_worth.end());
    for (auto& [worth, name] : by_worth) {
      if (candidates_.size() >= kMaxSaved) break;
      candidates_.push_back({std::move(name)});
    }
  }

  // Returns the modules of a block, by name: the scopes directly inside the block that open only
  // once.
  std::map<std::string, LocalRange> modules_of(std::size_t kind) const {
    const Span& block = span_of(kind);
    const std::string& path = trace_.scopes[*block.scope].path;
    std::map<std::string, LocalRange> modules;
    for (const TracedScope& scope : trace_.scopes) {
      if (scope.parent != block.scope || scope.first_op >= scope.end_op) continue;
      if (times_opened_.at(scope.path) > 1) continue;
      const OpId start = block.range.first;
      modules[scope.path.substr(path.size() + 1)] = {scope.first_op - start, scope.end_op - start};
    }
    return modules;
  }

  // Returns the ways to make regions: the whole block, each module by itself, and all modules as
  // separate regions.
  std::vector<std::vector<std::string>> choices_of_modules() const {
    std::set<std::string> all;
    for (std::size_t kind = 0; kind < pricers_.size(); ++kind) {
      if (!is_block(kind)) continue;
      for (const auto& [name, range] : modules_of(kind)) all.insert(name);
    }
    std::vector<std::vector<std::string>> choices = {{}};
    for (const std::string& name : all) choices.push_back({name});
    if (all.size() > 1) choices.emplace_back(all.begin(), all.end());
    return choices;
  }

  bool is_inside(const std::string& op, const std::vector<std::string>& modules) const {
    if (modules.empty()) return true;
    return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
      return op.starts_with(module + ".") || op.starts_with(module + "::");
    });
  }

  void add_lists(const std::vector<std::string>& modules) {
    std::vector<std::vector<std::string>> ops;
    for (const std::vector<std::string>& names : candidates_) {
      std::vector<std::string> inside;
      for (const std::string& name : names) {
        if (is_inside(name, modules)) inside.push_back(name);
      }
      if (!inside.empty()) ops.push_back(std::move(inside));
    }
    for (std::size_t chosen = 0; chosen < std::size_t{1} << ops.size(); ++chosen) {
      if (space_.is_stopped()) return;
      SimpleRule rule{true, modules, {}};
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if ((chosen >> i & 1) == 0) continue;
        rule.saves.insert(rule.saves.end(), ops[i].begin(), ops[i].end());
      }
      add(std::move(rule));
    }
  }

  std::vector<RegionSaves> regions_of(std::size_t kind, const SimpleRule& rule) {
    if (!is_block(kind) || !rule.is_checkpointed) return {};
    std::vector<LocalRange> ranges;
    if (rule.modules.empty()) {
      ranges.push_back(pricers_[kind].whole());
    } else {
      const std::map<std::string, LocalRange> modules = modules_of(kind);
      for (const std::string& name : rule.modules) {
        if (modules.contains(name)) ranges.push_back(modules.at(name));
      }
    }
    std::sort(ranges.begin(), ranges.end(),
              [](LocalRange a, LocalRange b) { return a.first < b.first; });
    std::vector<RegionSaves> regions;
    for (const LocalRange range : ranges) {
      if (!has_live_slot(pricers_[kind].graph(range))) continue;
      RegionSaves region{range, {}};
      for (int op = range.first; op < range.end; ++op) {
        const std::string& name = names_[kind][static_cast<std::size_t>(op)];
        const bool is_saved =
            std::find(rule.saves.begin(), rule.saves.end(), name) != rule.saves.end();
        if (is_saved) region.saves.push_back(op - range.first);
      }
      regions.push_back(std::move(region));
    }
    return regions;
  }

  // Prices a kind of block with these regions. Caches the price without regions, because most rules
  // leave some kind of block without regions.
  LayerOption price(std::size_t kind, const std::vector<RegionSaves>& regions) {
    const auto priced = [&] { return pricers_[kind].price(regions); };
    if (!regions.empty()) return priced();
    unmanaged_.resize(pricers_.size());
    if (!unmanaged_[kind]) unmanaged_[kind] = priced();
    return *unmanaged_[kind];
  }

  void add(SimpleRule rule) {
    RuleFigures figures{std::move(rule), {}};
    for (std::size_t kind = 0; kind < pricers_.size(); ++kind) {
      SpanOption option{{}, regions_of(kind, figures.rule)};
      option.figures = price(kind, option.regions);
      figures.by_kind.push_back(std::move(option));
    }
    rules_.push_back(std::move(figures));
  }

  // Drops rules that are worse than a rule with the same regions. Rules with different regions are
  // hard to compare by their figures. A rule that is worse than a rule with other regions is
  // therefore kept, but is not combined with other rules. The first two rules, which keep and
  // recompute everything, always stay.
  void keep_best(std::size_t most_paired) {
    std::vector<std::size_t> paired;
    std::vector<std::size_t> alone;
    for (std::size_t i = 2; i < rules_.size(); ++i) {
      bool is_beaten = false;
      bool is_beaten_by_its_like = false;
      for (std::size_t other = 0; other < rules_.size(); ++other) {
        if (!is_no_worse(rules_[other], rules_[i])) continue;
        const bool is_better = !is_no_worse(rules_[i], rules_[other]);
        is_beaten |= is_better || other < i;
        is_beaten_by_its_like |= is_better && rules_[other].rule.modules == rules_[i].rule.modules;
      }
      if (!is_beaten_by_its_like) (is_beaten ? alone : paired).push_back(i);
    }
    std::stable_sort(paired.begin(), paired.end(), [&](std::size_t a, std::size_t b) {
      return total_time(rules_[a]) < total_time(rules_[b]);
    });
    std::vector<RuleFigures> kept = {rules_[0], rules_[1]};
    const std::size_t num_paired = std::min(paired.size(), most_paired - kept.size());
    for (std::size_t i = 0; i < num_paired; ++i) {
      const std::size_t place =
          num_paired == paired.size() ? i : i * (paired.size() - 1) / (num_paired - 1);
      kept.push_back(rules_[paired[place]]);
      paired[place] = 0;
    }
    num_paired_ = kept.size();
    for (const std::size_t rule : paired) {
      if (rule != 0) kept.push_back(rules_[rule]);
    }
    for (const std::size_t rule : alone) kept.push_back(rules_[rule]);
    rules_ = std::move(kept);
  }

  const Trace& trace_;
  const SpanMap& map_;
  const OpTimes& times_;
  const SearchSpace& space_;
  std::map<std::string_view, int> times_opened_;
  std::vector<SpanPricer> pricers_;  // indexed by kind
  // indexed by kind: names of the ops of a block
  std::vector<std::vector<std::string>> names_;
  // each entry lists ops that are always kept together
  std::vector<std::vector<std::string>> candidates_;
  std::vector<std::optional<LayerOption>> unmanaged_;  // indexed by kind
  std::vector<RuleFigures> rules_;
  std::size_t num_paired_ = 0;
};

}  // namespace

SimpleRules simple_rules(const SearchedTrace& searched, std::size_t most_paired) {
  return RuleMaker(searched).run(most_paired);
}

}  // namespace rematch
