#include "policies/export/system_config.h"

#include <set>
#include <utility>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/systems.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/golden.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using testing::plan_of;
using testing::toy_llama;

std::string lines_or_refusal(std::string_view target, const Trace& trace, const Plan& plan) {
  const auto found = system_config(target, trace, plan);
  if (const auto* rejected = std::get_if<Rejected>(&found)) {
    CHECK(rejected->message.find('\n') == std::string::npos);
    return "refused: " + rejected->message + "\n";
  }
  return std::get<std::string>(found);
}

TEST_CASE("for each target, export prints lines that reproduce the plan, or states the differences",
          "[golden]") {
  const Trace trace = toy_llama({.layers = 4});
  std::string text;
  for (const char* policy : {"full", "nth_first(2)", "nth_last(2)", "first_n(3)", "segments(2)",
                             "save_mm", "sac_titan"}) {
    const Plan plan = plan_of(policy, trace);
    for (const std::string_view target : config_targets()) {
      text.append("== ").append(policy).append(" --to ").append(target).append("\n");
      text += lines_or_refusal(target, trace, plan);
    }
  }
  testing::check_golden("export/configs.txt", text);
}

// Resolves each mode of each system to a plan, and exports the plan. The export must return the
// original mode. Modes that no release contains, and older lists of torchtitan, cannot be exported.
TEST_CASE("export finds the mode that made a plan, if a release of the system contains the mode") {
  const std::set<std::string_view> not_in_a_release = {
      "diffusers(every=2)",
      "diffusers(skip_every=2)",
      "diffusers(skip_layers=[0,1])",
      "titan:selective_even",
      "titan:selective_2024",
      "titan:split_flex_compiled",
      "titan:split_flex_eager",
      "huggingface(offload=true)",
      "huggingface(every_n_layers=2,offload=true)"};
  const Trace trace = toy_llama({.layers = 4});
  int num_written = 0;
  for (const TrainingSystem& system : training_systems()) {
    if (system.target.empty() || system.target == "remat") continue;
    for (const SystemEntry& entry : system_entries()) {
      if (entry.system != system.name || entry.stands_for == "none") continue;
      std::string mode(entry.spelling);
      for (const auto& [hole, value] : std::initializer_list<std::pair<std::string, std::string>>{
               {"=N", "=2"},
               {"=L", "=[0,1]"},
               {"(M)", "(llama3)"},
               {"=M", "=[layernorm]"},
               {"(K)", "(ops.aten.mm.default)"},
               {"=K", "=[ops.aten.mm.default]"},
               {"=S", "=[attention.*]"},
               {"=R", "=[attention.wo.*]"}}) {
        mode = filled_in(mode, hole, value);
      }
      if (not_in_a_release.contains(mode)) continue;
      const auto policy = parse_policy(mode);
      if (!std::holds_alternative<Policy>(policy)) continue;
      const auto plan = resolve(std::get<Policy>(policy), trace, NoEffect::kAllow);
      if (!std::holds_alternative<Plan>(plan) || std::get<Plan>(plan).regions.empty()) continue;
      const std::string text = lines_or_refusal(system.target, trace, std::get<Plan>(plan));
      CAPTURE(mode, text);
      CHECK_FALSE(text.starts_with("refused: "));
      ++num_written;
    }
  }
  CHECK(num_written > 30);
}

TEST_CASE("the configuration of a mode contains the values of its arguments") {
  const auto written = [](const char* spelling) { return filled_mode(spelling)->configuration; };
  CHECK(written("titan(selective_ac_option=3)").ends_with("selective_ac_option = \"3\""));
  CHECK(written("megatron(recompute_modules=[mlp])").empty());
  CHECK(written("megatron(recompute_granularity=selective,recompute_modules=[mlp,moe])") ==
        "--recompute-granularity selective --recompute-modules mlp moe");
  CHECK(written("modalities:selective_op(a,b)").ends_with("keys:\n    - a\n    - b"));
  CHECK(written("titan:ActivationRematConfig(save_regions=[a.*,b])") ==
        "activation_checkpoint=ActivationRematConfig(save_regions=[\"a.*\", \"b\"])");
  CHECK_FALSE(filled_mode("full"));
  CHECK_FALSE(filled_mode("titan:fulll"));
}

TEST_CASE("a plan that checkpoints nothing needs no configuration") {
  const Trace trace = toy_llama({.layers = 4});
  CHECK_THAT(lines_or_refusal("torchtune", trace, plan_of("none", trace)),
             Catch::Contains("the plan checkpoints nothing"));
}

}  // namespace
}  // namespace rematch
