#include "policies/catalogue/describe.h"
#include "policies/catalogue/catalogue.h"

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "policies/base/json.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/warnings.h"
#include "policies/trace/compiled_graph.h"
#include "reports/render/tables/plan_table.h"

namespace rematch {
namespace {

constexpr std::size_t kAnyWidth = 10'000;

struct DescribeFlags {
  explicit DescribeFlags(CLI::App& app) : model(app, ModelFlags::Name::kPositional) {
    app.add_option("policy", policy, "Policy: a name from rematch list, or a JSON file");
    app.add_option("--plan", plan_file, "Plan file, or a point of a front such as front.json#3");
    app.add_option("--trace", trace, "Stored trace; the policy is then the only argument");
    app.add_flag("--kept", kept, "Print only the kept ops of each kind of layer, and the totals");
    app.add_flag("--json", json, "Print JSON instead of the table");
  }
  ModelFlags model;
  std::string policy;
  std::string plan_file;
  std::string trace;
  bool kept = false;
  bool json = false;
};

// Returns the policy's note, and what a reader should know about a compiled graph.
std::string whole_note(std::string_view note, const Trace& trace) {
  const std::string of_graph = compiled_graph_note(trace.dimensions);
  const bool has_both = !note.empty() && !of_graph.empty();
  return std::string(note) + (has_both ? "; " : "") + of_graph;
}

ExitCode show_plan(const Plan& plan, const Trace& trace, std::string_view policy_note,
                   const std::vector<std::string>& warnings, const DescribeFlags& flags) {
  const std::string note = whole_note(policy_note, trace);
  if (flags.json) {
    Json json = describe_json(plan, trace, note);
    json["warnings"] = warnings;
    print_json(json);
    return ExitCode::kOk;
  }
  // The full table is never wrapped: it has one line per op, so that grep can search it.
  print(flags.kept ? kept_to_text(plan, trace, note, terminal_columns())
                   : plan_to_text(plan, trace, note, kAnyWidth));
  print_warnings(warnings);
  return ExitCode::kOk;
}

// Returns the stored trace, or records a trace of the model that the plan and the flags give.
// Recording takes time, so a model that differs from the plan's is rejected first.
Trace trace_of(const DescribeFlags& flags, const Plan& plan) {
  if (!flags.trace.empty()) return obtain_trace(flags.model, flags.trace);
  const ModelSpec spec = model_for(flags.model, &plan);
  require_same_model(plan, spec.preset, spec.dimensions, spec.dtype);
  return record_trace(spec);
}

// Plan files do not store the policy's note, so this function takes it from the catalogue.
std::string note_of(const Plan& plan) {
  if (plan.policy.ends_with(".json")) return "";
  const auto policy = parse_policy(plan.policy);
  const auto* known = std::get_if<Policy>(&policy);
  return known == nullptr ? "" : known->note;
}

ExitCode describe_plan(const DescribeFlags& flags) {
  if (!flags.policy.empty()) {
    throw UsageError("--plan replaces the policy; leave out '" + flags.policy + "'");
  }
  const Plan whole_plan = require_plan(flags.plan_file);
  const Trace trace = trace_of(flags, whole_plan);
  const Plan plan = plan_of_trace(whole_plan, trace_sha256(trace));
  require_same_model(plan, trace.model, trace.dimensions, trace.dtype);
  require_same_trace(plan, flags.plan_file, trace);
  return show_plan(plan, trace, note_of(plan), {}, flags);
}

ExitCode run(const DescribeFlags& flags) {
  if (!flags.plan_file.empty()) return describe_plan(flags);
  for (const std::string& word : {flags.policy, flags.model.model()}) reject_plans(word);
  // With a stored trace, the first argument is the policy.
  const bool one_argument = flags.policy.empty();
  if (one_argument && flags.trace.empty()) {
    throw UsageError("describe takes a model and a policy: rematch describe wan_small attn_only");
  }
  if (!one_argument && !flags.trace.empty()) {
    throw UsageError("--trace already names the model; give only the policy");
  }
  const Policy policy = require(parse_policy(one_argument ? flags.model.model() : flags.policy));
  const Trace trace = obtain_trace(flags.model, flags.trace);
  const Plan plan = require(resolve(policy, trace, NoEffect::kAllow));
  return show_plan(plan, trace, policy.note, plan_warnings(policy, plan, trace), flags);
}

}  // namespace

void add_describe(CLI::App& app, Action& action) {
  add_command<DescribeFlags>(
      app, action, "describe",
      "Shows what a policy does to each layer and op of a model, the reasons, and the bytes", run,
      "Examples:\n"
      "  rematch describe llama_small 'nth_first(2)'\n"
      "  rematch describe deepseek_v3_16b titan:selective --dtype bf16 --kept\n"
      "  rematch describe wan_1_3b attn_only --video 77x480x832 --json\n"
      "  rematch describe save_mm --trace llama.trace.json\n"
      "  rematch describe --plan front.json#3");
}

}  // namespace rematch
