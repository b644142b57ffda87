#include "policies/export/plan_difference.h"

#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using testing::plan_of;
using testing::toy_llama;

TEST_CASE("plans with different policy names but the same effect have no difference") {
  const Trace trace = toy_llama({.layers = 4});
  Plan renamed = plan_of("nth_first(2)", trace);
  renamed.policy = "mine";
  CHECK_FALSE(difference_of(trace, renamed, plan_of("nth_first(2)", trace)));
  CHECK_FALSE(difference_of(trace, plan_of("full", trace), plan_of("nth_first(1)", trace)));
}

TEST_CASE("the first differing op is reported with its layer") {
  const Trace trace = toy_llama({.layers = 4});
  const Plan full = plan_of("full", trace);
  CHECK(difference_of(trace, full, plan_of("nth_first(2)", trace))->first ==
        "blocks.1 is checkpointed by the plan, but not by the mode");
  CHECK(difference_of(trace, plan_of("nth_first(2)", trace), full)->first ==
        "blocks.1 is checkpointed by the mode, but not by the plan");
  CHECK(difference_of(trace, full, plan_of("segments(2)", trace))->first ==
        "blocks.0 is in different regions in the plan and in the mode");
  const auto kept = difference_of(trace, plan_of("attn_only", trace), full);
  CHECK_THAT(kept->first, Catch::StartsWith("the plan keeps rematch::attention (op ") &&
                              Catch::EndsWith(" of blocks.0); the mode recomputes it"));
  CHECK(kept->num_ops == 4);  // one op in each of four layers
}

TEST_CASE(
    "a difference is reported even if plans differ only in the inputs that they copy to the host") {
  const Trace trace = toy_llama({.layers = 4});
  const auto difference =
      difference_of(trace, plan_of("offload_inputs(full)", trace), plan_of("full", trace));
  REQUIRE(difference);
  CHECK(difference->num_ops == 4);  // one input in each of four layers
  CHECK(difference->first == "blocks.0: the plan keeps its inputs on the host, the mode does not");
}

TEST_CASE("a difference is reported even if plans differ only in early stop") {
  const Trace trace = toy_llama({.layers = 4});
  const auto difference =
      difference_of(trace, plan_of("full", trace), plan_of("full_nostop", trace));
  CHECK(difference->num_ops == 0);
  CHECK(difference->of_early_stop);
  CHECK(difference->first == "the mode re-runs a region to its end, but the plan stops early");
}

// titan:FullActivationRematConfig recomputes w2, although nothing needs its result, and skips the
// add after it.
TEST_CASE(
    "a difference is marked if it consists only of needless recompute at the end of a block") {
  const Trace trace = toy_llama({.layers = 4});
  const Plan mode = plan_of("titan:FullActivationRematConfig", trace);
  const auto difference = difference_of(trace, plan_of("full", trace), mode);
  CHECK(difference->num_ops == 0);
  CHECK(difference->of_early_stop);
  CHECK(difference->first == "the mode re-runs a region to its end, but the plan stops early");
  const auto of_add = difference_of(trace, plan_of("full_nostop", trace), mode);
  CHECK(of_add->of_early_stop);
  CHECK_THAT(of_add->first, Catch::StartsWith("the plan recomputes aten::add.Tensor (op ") &&
                                Catch::EndsWith(" of blocks.0); the mode skips it"));
}

}  // namespace
}  // namespace rematch
