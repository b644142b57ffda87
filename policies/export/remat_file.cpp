#include "policies/export/remat_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/resolve.h"
#include "policies/export/hidden_ops.h"
#include "policies/export/plan_difference.h"
#include "policies/export/python_text.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {
namespace {

using Problem = std::optional<std::string>;

// A submodule that recompute skips: every op of its scope is saved or skipped.
struct PartScope {
  ScopeId scope;
  OpRange range;
};

bool is_below(const Trace& trace, ScopeId scope, ScopeId ancestor) {
  std::optional<ScopeId> parent = trace.scopes[scope].parent;
  while (parent && *parent != ancestor) parent = trace.scopes[*parent].parent;
  return parent.has_value();
}

Problem problem_of_region(const PlannedRegion& region, const RegionType& type, Schedule schedule) {
  if (region.first_scope != region.last_scope) {
    return "the region spans several modules, but torch_remat checkpoints whole modules";
  }
  if (type.by_demand) return "the policy recomputes only the ops that backward needs";
  if (schedule == Schedule::kOnDemand && !type.whole_on_demand) {
    return "the plan was made for schedule on_demand, but torch_remat recomputes whole modules";
  }
  if (type.early_stop) {
    return "the recompute stops early, but torch_remat runs a module to its end; use a policy "
           "remat(save=[...])";
  }
  return move_words(type);
}

// Finds the submodules of one region that recompute skips. Also checks that saving these submodules
// gives the same plan for the region.
class RegionParts {
 public:
  RegionParts(const Trace& trace, const TraceIndex& index, const PlannedRegion& region,
              const RegionType& type, OpRange range)
      : trace_(trace), region_(region), type_(type), range_(range), graph_(index.graph(range)) {}

  // Finds the submodules. Returns a problem if torch_remat cannot run the region.
  Problem find() {
    if (Problem problem = find_parts()) return problem;
    return problem_of_ops();
  }

  // Adds a selector for each submodule in `parts_`.
  void add_selectors(std::vector<Selector>& selectors) const {
    for (const PartScope& part : parts_) {
      selectors.push_back({trace_.scopes[part.scope].path, "any", std::nullopt});
    }
  }

  // Compares the region with the region of the same layer in `made`. The plan `made` saves the
  // submodules in `parts_`. Returns a problem if the two region types differ.
  Problem problem_of_plan(const Plan& made) const {
    const auto found = std::find_if(
        made.regions.begin(), made.regions.end(),
        [&](const PlannedRegion& other) { return other.first_scope == region_.first_scope; });
    if (found == made.regions.end()) return "the region is not a layer";
    const RegionType& type = made.types[static_cast<std::size_t>(found->type)];
    if (type.ops.size() != type_.ops.size()) return "the region is not a whole layer";
    for (std::size_t op = 0; op < type.ops.size(); ++op) {
      const PlannedOp& planned = type_.ops[op];
      const PlannedOp& other = type.ops[op];
      if (other.treatment == planned.treatment && other.skipped == planned.skipped) continue;
      return "torch_remat would " +
             std::string(other.skipped ? "skip" : to_string(other.treatment)) + " " + planned.name +
             " (op " + std::to_string(op) + ")";
    }
    return std::nullopt;
  }

  std::variant<RematModule, Rejected> module() const {
    RematModule module{region_.first_scope, {}};
    for (const PartScope& part : parts_) {
      const std::string& path = trace_.scopes[part.scope].path;
      const auto again = is_read_again(part);
      if (const auto* rejected = std::get_if<Rejected>(&again)) return *rejected;
      module.saved.push_back({path.substr(region_.first_scope.size() + 1), std::get<bool>(again)});
    }
    return module;
  }

 private:
  bool is_in_part(std::size_t op) const {
    return type_.ops[op].skipped || type_.ops[op].treatment == Treatment::kSave;
  }
  std::size_t local(OpId op) const { return static_cast<std::size_t>(op - range_.first); }

  // Finds the outermost submodules whose ops are all saved or skipped.
  Problem find_parts() {
    const ScopeId own = own_scope();
    std::vector<bool> covered(type_.ops.size(), false);
    std::set<std::string> names;
    for (const ScopeId id : IdRange(own + 1, trace_.scopes.end_id())) {
      const TracedScope& scope = trace_.scopes[id];
      if (!is_below(trace_, id, own) || scope.first_op >= scope.end_op) continue;
      if (covered[local(scope.first_op)]) continue;
      bool is_whole = true;
      for (const OpId op : IdRange(scope.first_op, scope.end_op)) is_whole &= is_in_part(local(op));
      if (!is_whole) continue;
      if (!names.insert(scope.path).second) return scope.path + " runs twice in the region";
      parts_.push_back({id, {scope.first_op, scope.end_op}});
      for (const OpId op : IdRange(scope.first_op, scope.end_op)) covered[local(op)] = true;
    }
    for (std::size_t op = 0; op < type_.ops.size(); ++op) {
      if (is_in_part(op) && !covered[op]) {
        return type_.ops[op].name + " (op " + std::to_string(op) +
               ") is kept, but torch_remat can only save whole modules";
      }
    }
    return std::nullopt;
  }

  ScopeId own_scope() const {
    for (const ScopeId id : trace_.scopes.ids()) {
      const TracedScope& scope = trace_.scopes[id];
      if (scope.path == region_.first_scope && scope.first_op == range_.first) return id;
    }
    return {};
  }

  Problem problem_of_ops() const {
    for (std::size_t op = 0; op < type_.ops.size(); ++op) {
      if (is_in_part(op)) continue;
      const std::string words = type_.ops[op].name + " (op " + std::to_string(op) + ")";
      if (graph_.ops[op].side_effect) {
        return words +
               " writes to a tensor that comes from outside the region, and recompute would repeat "
               "the write";
      }
      if (trace_.ops[range_.first + static_cast<std::int32_t>(op)].draws_random) {
        return words + " draws random numbers, but torch_remat does not restore the generator";
      }
    }
    return std::nullopt;
  }

  // Returns whether, after the submodule, recompute runs an op that reads one of its results. If
  // so, torch_remat keeps every result of the submodule. The plan must then keep every result too.
  std::variant<bool, Rejected> is_read_again(const PartScope& part) const {
    std::set<int> made;  // storages that the submodule's ops make
    std::set<int> read;  // storages in `made` that later ops read
    bool is_needed = false;
    for (const OpId op : part.range.ids()) {
      if (graph_.ops[local(op)].is_view) continue;
      for (const int output : graph_.ops[local(op)].outputs) {
        made.insert(graph_.values[output].storage);
      }
    }
    for (std::size_t op = local(part.range.end); op < graph_.ops.size(); ++op) {
      if (graph_.ops[op].is_view) continue;
      for (const RegionUse& use : graph_.ops[op].reads) {
        const int storage = graph_.values[use.value].storage;
        if (!made.contains(storage)) continue;
        read.insert(storage);
        is_needed |= !is_in_part(op);
      }
    }
    if (!is_needed) return false;
    for (const OpId op : part.range.ids()) {
      for (const int output : graph_.ops[local(op)].outputs) {
        const bool is_result = read.contains(graph_.values[output].storage);
        if (graph_.ops[local(op)].is_view || !is_result) continue;
        if (type_.ops[local(op)].treatment == Treatment::kSave) continue;
        return Rejected{"torch_remat would keep all results of " + trace_.scopes[part.scope].path +
                        ", but the plan keeps only some of them"};
      }
    }
    return true;
  }

  const Trace& trace_;
  const PlannedRegion& region_;
  const RegionType& type_;
  OpRange range_;
  RegionGraph graph_;
  std::vector<PartScope> parts_;
};

// Collects the problems of regions that cannot be exported.
class Problems {
 public:
  void add(const PlannedRegion& region, const Problem& problem) {
    if (!problem) return;
    if (first_.empty()) first_ = "region " + region.first_scope + ": " + *problem;
    layers_.insert(layers_.end(), region.layers.begin(), region.layers.end());
  }
  bool any() const { return !first_.empty(); }
  Rejected rejected() const {
    if (layers_.empty()) return Rejected{first_};
    const std::string layers =
        layers_.size() == 1
            ? "layer " + layer_ranges(layers_) + " is not a region of torch_remat; "
            : "layers " + layer_ranges(layers_) + " are not regions of torch_remat; ";
    return Rejected{layers + first_};
  }

 private:
  std::string first_;
  std::vector<int> layers_;
};

std::string remat_modules_text(const std::vector<RematModule>& modules) {
  std::string text;
  for (const RematModule& module : modules) {
    std::vector<std::string> parts;
    for (const SavedPart& part : module.saved) {
      parts.push_back(in_python_quotes(part.name) + ": " + (part.is_read_again ? "True" : "False"));
    }
    text += "    " + in_python_quotes(module.module) + ": {" + joined(parts) + "},\n";
  }
  return text;
}

}  // namespace

std::variant<std::vector<RematModule>, Rejected> remat_modules(const Trace& trace, const Plan& plan,
                                                               Schedule schedule) {
  if (plan.regions.empty()) {
    return Rejected{"the plan checkpoints nothing, so there is nothing to export"};
  }
  const TraceIndex index(trace);
  const std::vector<OpRange> ranges = index.ranges(plan);
  std::vector<RegionParts> all;
  std::map<std::string, int> calls;
  Problems problems;
  Policy policy;
  policy.name = "remat";
  policy.early_stop = false;
  for (std::size_t i = 0; i < plan.regions.size(); ++i) {
    const PlannedRegion& region = plan.regions[i];
    const RegionType& type = plan.types[static_cast<std::size_t>(region.type)];
    RegionParts parts(trace, index, region, type, ranges[i]);
    Problem problem = problem_of_region(region, type, schedule);
    if (!problem && calls[region.first_scope]++ > 0) {
      problem = "the module is called several times in a step";
    }
    if (!problem) problem = hidden_op_problem(trace, ranges[i]);
    if (!problem) problem = parts.find();
    problems.add(region, problem);
    parts.add_selectors(policy.save_regions);
    all.push_back(std::move(parts));
  }
  if (problems.any()) return problems.rejected();
  const auto made = resolve(policy, trace, NoEffect::kAllow);
  if (const auto* rejected = std::get_if<Rejected>(&made)) return *rejected;
  std::vector<RematModule> modules;
  for (std::size_t i = 0; i < plan.regions.size(); ++i) {
    Problem problem = all[i].problem_of_plan(std::get<Plan>(made));
    if (!problem) {
      auto module = all[i].module();
      if (const auto* rejected = std::get_if<Rejected>(&module)) problem = rejected->message;
      if (!problem) modules.push_back(std::get<RematModule>(std::move(module)));
    }
    problems.add(plan.regions[i], problem);
  }
  if (problems.any()) return problems.rejected();
  return modules;
}

std::string remat_file(const Trace& trace, const Plan& plan,
                       const std::vector<RematModule>& modules, const CallPlace& place,
                       const std::string& module_name) {
  std::string text = template_of("saved_regions");
  text = filled_in(text, "@TITLE@",
                   in_docstring("The plan '" + plan.policy + "' for " + plan.model + ", " +
                                plan.dtype + ", on torch_remat."));
  text = filled_in(text, "@CALL@", call_text(place, module_name));
  text = filled_in(text, "@MODULES@", remat_modules_text(modules));
  return filled_in(text, "@PREDICTED@", predicted_text(trace, plan));
}

}  // namespace rematch
