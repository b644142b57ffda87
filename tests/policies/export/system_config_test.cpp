#include "policies/export/system_config.h"
#include "policies/base/rejected.h"

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

TEST_CASE("each target has lines that reproduce the plan, or states the differences", "[golden]") {
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

TEST_CASE("a plan that checkpoints nothing needs no configuration") {
  const Trace trace = toy_llama({.layers = 4});
  CHECK_THAT(lines_or_refusal("torchtune", trace, plan_of("none", trace)),
             Catch::Contains("the plan checkpoints nothing"));
}

}  // namespace
}  // namespace rematch
