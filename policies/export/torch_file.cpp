#include "policies/export/torch_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/base/id.h"
#include "policies/base/text.h"
#include "policies/export/hidden_ops.h"
#include "policies/export/plan_difference.h"
#include "policies/export/python_text.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {
namespace {

// Selective checkpointing ignores aten::detach, because forward and recompute may run it a
// different number of times.
constexpr std::string_view kIgnoredOp = "aten::detach";

using Problem = std::optional<std::string>;

std::string name_of(const PlannedRegion& region) {
  return region.first_scope == region.last_scope ? region.first_scope
                                                 : region.first_scope + " to " + region.last_scope;
}

Problem problem_of_kind(const RegionType& type, Schedule schedule) {
  if (type.by_demand) return "the policy recomputes only the ops that backward needs";
  if (schedule == Schedule::kOnDemand && !type.whole_on_demand) {
    return "the plan was made for schedule on_demand, but torch recomputes whole regions; search "
           "with --for torch";
  }
  if (!skipped_ops(type).empty()) {
    return "recompute skips ops whose results it does not need, which torch alone cannot do; use "
           "--to remat";
  }
  return move_words(type);
}

const TracedOp& traced_op(const Trace& trace, const RegionGraph& graph, std::size_t op) {
  return trace.ops[graph.range.first + static_cast<std::int32_t>(op)];
}

std::string op_words(const Trace& trace, const RegionGraph& graph, std::size_t op) {
  return traced_op(trace, graph, op).name + " (op " + std::to_string(op) + ")";
}

// Note [A kept draw shifts later draws] torch's recompute begins with the generator state at the
// beginning of forward. If the result of a random draw is kept, the draw does not run again and
// does not advance the generator. Later draws would therefore return different numbers from those
// in forward.
Problem problem_of_ops(const Trace& trace, const RegionGraph& graph, const RegionType& type,
                       const std::vector<bool>& saved) {
  const auto end = type.early_stop ? static_cast<std::size_t>(graph.stop) : graph.ops.size();
  std::optional<std::size_t> kept_draw;
  for (std::size_t op = 0; op < end; ++op) {
    if (graph.ops[op].side_effect) {
      return op_words(trace, graph, op) +
             " writes to a tensor that comes from outside the region, and torch's recompute would "
             "repeat the write";
    }
    if (!traced_op(trace, graph, op).draws_random) continue;
    if (saved[op]) {
      kept_draw = kept_draw.value_or(op);
    } else if (kept_draw) {
      return op_words(trace, graph, op) + " draws after " + op_words(trace, graph, *kept_draw) +
             ", which is kept, and would draw different numbers in torch's recompute";
    }
  }
  return std::nullopt;
}

TorchRegionKind kind_of(const Trace& trace, const RegionGraph& graph, const RegionType& type,
                        const std::vector<bool>& saved) {
  TorchRegionKind kind;
  kind.early_stop = type.early_stop;
  const bool keeps_some = std::find(saved.begin(), saved.end(), true) != saved.end();
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const TracedOp& traced = traced_op(trace, graph, op);
    kind.draws_random |= traced.draws_random;
    if (!keeps_some || traced.name == kIgnoredOp) continue;
    if (saved[op]) kind.saved.push_back(kind.ops.size());
    kind.ops.push_back(traced.name);
  }
  return kind;
}

int times_opened(const Trace& trace, const std::string& path) {
  return static_cast<int>(
      std::count_if(trace.scopes.begin(), trace.scopes.end(), [&](const TracedScope& scope) {
        return scope.path == path && scope.first_op < scope.end_op;
      }));
}

class RegionExport {
 public:
  RegionExport(const Trace& trace, const Plan& plan, Schedule schedule)
      : trace_(trace),
        plan_(plan),
        schedule_(schedule),
        index_(trace),
        ranges_(index_.ranges(plan)) {}

  std::variant<TorchRegions, Rejected> run() {
    for (std::size_t index = 0; index < plan_.regions.size(); ++index) {
      if (const Problem problem = add(index)) {
        return Rejected{"region " + name_of(plan_.regions[index]) + ": " + *problem};
      }
    }
    for (const TorchRegion& region : found_.regions) {
      if (times_opened(trace_, region.module) == calls_[region.module]) continue;
      return Rejected{
          "region " + region.module +
          ": the module is called several times in a step, but torch would checkpoint every call"};
    }
    return std::move(found_);
  }

 private:
  Problem add(std::size_t index) {
    const PlannedRegion& region = plan_.regions[index];
    const RegionType& type = plan_.types[static_cast<std::size_t>(region.type)];
    if (region.first_scope != region.last_scope) {
      return "the region spans several modules, but torch checkpoints whole modules; search with "
             "--for torch";
    }
    if (Problem problem = problem_of_kind(type, schedule_)) return problem;
    const RegionGraph graph = index_.graph(ranges_[index]);
    const std::vector<bool> saved = saved_ops(graph, type);
    if (Problem problem = hidden_op_problem(trace_, ranges_[index])) return problem;
    if (Problem problem = problem_of_ops(trace_, graph, type, saved)) return problem;
    const int kind = add_once(found_.kinds, kind_of(trace_, graph, type, saved));
    if (calls_[region.first_scope]++ == 0) {
      found_.regions.push_back({region.first_scope, kind});
      return std::nullopt;
    }
    const auto known =
        std::find_if(found_.regions.begin(), found_.regions.end(),
                     [&](const TorchRegion& other) { return other.module == region.first_scope; });
    if (known->kind == kind) return std::nullopt;
    return "the module is called several times in a step, and the plan treats the calls "
           "differently";
  }

  const Trace& trace_;
  const Plan& plan_;
  Schedule schedule_;
  TraceIndex index_;
  std::vector<OpRange> ranges_;
  TorchRegions found_;
  std::map<std::string, int> calls_;
};

}  // namespace

std::variant<TorchRegions, Rejected> torch_regions(const Trace& trace, const Plan& plan,
                                                   Schedule schedule) {
  return RegionExport(trace, plan, schedule).run();
}

namespace {

constexpr std::size_t kLineLength = 118;

// Formats a list "[a, b, c]", with a line break where a line would get too long.
std::string list_of(const std::vector<std::string>& items, std::size_t indent) {
  std::string text = "[";
  std::size_t column = indent;
  for (std::size_t index = 0; index < items.size(); ++index) {
    const std::string item = items[index] + (index + 1 < items.size() ? "," : "");
    if (index != 0 && column + item.size() + 1 > kLineLength) {
      text.append("\n").append(indent, ' ');
      column = indent;
    } else if (index != 0) {
      text += ' ';
      ++column;
    }
    text += item;
    column += item.size();
  }
  return text + "]";
}

std::string kinds_text(const TorchRegions& regions) {
  constexpr std::size_t kIndent = 13;  // the column after `"ops": [`
  std::string text;
  for (const TorchRegionKind& kind : regions.kinds) {
    std::vector<std::string> ops;
    std::vector<std::string> saved;
    for (const std::string& op : kind.ops) ops.push_back(in_python_quotes(op));
    for (const std::size_t op : kind.saved) saved.push_back(std::to_string(op));
    const auto truth = [](bool value) { return std::string(value ? "True" : "False"); };
    text.append("    {\"early_stop\": ").append(truth(kind.early_stop));
    text.append(", \"preserve_rng_state\": ").append(truth(kind.draws_random));
    text.append(",\n     \"save\": ").append(list_of(saved, kIndent + 1));
    text.append(",\n     \"ops\": ").append(list_of(ops, kIndent)).append("},\n");
  }
  return text;
}

std::string modules_text(const TorchRegions& regions) {
  std::string text;
  for (const TorchRegion& region : regions.regions) {
    text.append("    ").append(in_python_quotes(region.module)).append(": ");
    text.append(std::to_string(region.kind)).append(",\n");
  }
  return text;
}

}  // namespace

std::string torch_file(const Trace& trace, const Plan& plan, const TorchRegions& regions,
                       const CallPlace& place, const std::string& module_name) {
  std::string text = template_of("checkpointed");
  text = filled_in(text, "@TITLE@",
                   in_docstring("The plan '" + plan.policy + "' for " + plan.model + ", " +
                                plan.dtype + ", with torch.utils.checkpoint."));
  text = filled_in(text, "@TARGET@", std::string(place.target));
  text = filled_in(text, "@CALL@", call_text(place, module_name));
  text = filled_in(text, "@KINDS@", kinds_text(regions));
  text = filled_in(text, "@MODULES@", modules_text(regions));
  text = filled_in(text, "@PREDICTED@", predicted_text(trace, plan));
  return text;
}

}  // namespace rematch
