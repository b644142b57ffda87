#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/json.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/warnings.h"
#include "policies/plan/plan_json.h"

namespace rematch {
namespace {

struct PlanFlags : OutputFlags {
  explicit PlanFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("--policy", policy, "Policy: a name from rematch list, or a JSON file");
    app.add_option("--trace", trace, "Stored trace to use instead of --model");
    add_output_flags(app, "File to write (default: stdout)");
    app.add_flag("--allow-no-effect", allow_no_effect, "Accept a plan that changes nothing");
  }
  ModelFlags model;
  std::string policy;
  std::string trace;
  bool allow_no_effect = false;
};

ExitCode run(const PlanFlags& flags) {
  if (flags.policy.empty()) throw UsageError("no policy given; rematch list shows the policies");
  std::vector<std::string> inputs = policy_files(flags.policy);
  inputs.push_back(flags.trace);
  const OutputFile output(flags.request({file_kind::kPlan}, std::move(inputs)));
  const Policy policy = require(parse_policy(flags.policy));
  const Trace trace = obtain_trace(flags.model, flags.trace);
  const NoEffect no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  const Plan plan = require(resolve(policy, trace, no_effect));
  print_warnings(plan_warnings(policy, plan, trace));
  write_output(flags.output, plan_to_json(plan));
  return ExitCode::kOk;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  add_command<PlanFlags>(
      app, action, "plan", "Resolves a policy against a model and decides which results are kept",
      run,
      "Examples:\n"
      "  rematch plan --model wan_small --policy 'nth_first(2)' -o wan.plan.json\n"
      "  rematch plan --trace llama.trace.json --policy save_mm");
}

}  // namespace rematch
