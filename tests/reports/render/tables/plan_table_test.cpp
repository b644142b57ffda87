#include "reports/render/tables/plan_table.h"
#include "policies/base/rejected.h"

#include <stdexcept>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/describe.h"
#include "policies/catalogue/resolve.h"
#include "tests/policies/predict/backward_script.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

constexpr std::size_t kAllColumns = 2000;

Plan plan_of(std::string_view policy, const Trace& trace) {
  const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(plan);
}

void check_golden(const std::string& name, const std::string& text) {
  testing::check_golden("describe/" + name, text);
}

// A block keeps its attention and recomputes the rest.
TEST_CASE("each kept op has a line under the layers that keep the op") {
  const Trace trace = testing::toy_llama({.layers = 4});
  const std::string text = kept_to_text(plan_of("attn_only", trace), trace, "a note", kAllColumns);
  CAPTURE(text);
  CHECK(text.starts_with("attn_only\n\nlayers 0-3: 4 regions of "));
  CHECK_THAT(text, Catch::Contains("rematch::attention") && Catch::Contains("kept: ") &&
                       Catch::Contains("in total, from forward to backward: ") &&
                       Catch::Contains("note: a note"));
  CHECK_THAT(text, !Catch::Contains("aten::mm") && !Catch::Contains("checkpoints"));
  CHECK_THAT(kept_to_text(plan_of("full", trace), trace, "", kAllColumns),
             Catch::Contains("kept: nothing\n"));
}

TEST_CASE("hidden effects of the step are described") {
  Trace trace = testing::toy_llama({.layers = 2});
  trace.hidden = {{{"lib.ops:Rotary", std::vector<int>{0, 1}}}, {}, {"lib::noisy"}};
  const Plan plan = plan_of("full", trace);
  for (const std::string& text :
       {plan_to_text(plan, trace, "", kAllColumns), kept_to_text(plan, trace, "", kAllColumns)}) {
    CHECK_THAT(text,
               Catch::Contains("hidden: lib.ops:Rotary is one op that writes to arguments 0, 1\n"
                               "hidden: lib::noisy cannot be repeated\n"));
  }
  CHECK(describe_json(plan, trace)["kept_ops"].dump() == R"(["lib::noisy"])");
}

TEST_CASE("a plan is described op by op with totals", "[golden]") {
  const Trace trace = testing::toy_llama({.layers = 4});
  check_golden("nth_first.txt",
               plan_to_text(plan_of("nth_first(2)", trace), trace, "", kAllColumns));
  check_golden("save_mm.txt", plan_to_text(plan_of("save_mm", trace), trace, "", kAllColumns));
  check_golden("none.txt", plan_to_text(plan_of("none", trace), trace, "", kAllColumns));
}

// `reduced` (10 bytes) is computed from the kept value `source` (100 bytes). Backward demands
// `wide` (40 bytes) first, and `reduced` last.
TEST_CASE("the table describes a recompute order other than lazy", "[golden]") {
  testing::TraceBuilder build("reduction", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  {
    const auto scope = build.scope("blocks", 0);
    const ValueId source = build.call("aten::mm", {x}, {100});
    const ValueId reduced = build.call("aten::sum", {source}, {10});
    const ValueId out = build.call("aten::silu", {reduced}, {10}, {{0}, {}});
    const ValueId wide = build.call("aten::gelu", {x}, {40});
    build.call("aten::mul.Tensor", {wide, out}, {1}, {{0}, {}});
  }
  Trace trace = build.finish();
  using testing::backward_op;
  using testing::demand;
  using testing::release;
  trace.backward = {demand(1_pack),     backward_op(50), release(1_pack),
                    demand(0_pack, 50), backward_op(50), release(0_pack)};
  Plan plan = plan_of("save_mm", trace);
  check_golden("early_demand.txt", plan_to_text(plan, trace, "", kAllColumns));
  plan.types[0].demand_steps = {{1, {}, {0}}};
  CHECK_THAT(plan_to_text(plan, trace, "", kAllColumns),
             Catch::Contains("aten::sum (op 1) after aten::gelu (op 3)"));
  plan.types[0].demand_steps.clear();
  plan.types[0].whole_on_demand = true;
  CHECK_THAT(plan_to_text(plan, trace, "", kAllColumns),
             Catch::Contains("all tensors when backward first needs any of them"));
}

// Matmuls of a dense DeepSeek layer, in order: wq wkv_a wkv_b attention wo, then w1 w3 w2.
Trace latent_layer() {
  testing::TraceBuilder build("latent_layer");
  ValueId x = build.outside({8, 8}, "float32", true);
  const auto linear = [&build, &x](const char* name) {
    const auto scope = build.scope(name);
    x = build.call("aten::mm", {x, build.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
  };
  {
    const auto block = build.scope("blocks", 0);
    {
      const auto attention = build.scope("attention");
      for (const char* name : {"query", "kv_down", "kv_up"}) linear(name);
      {
        const auto core = build.scope("core");
        x = build.call("rematch::attention", {x}, {8, 8}, {{0}, {0}});
      }
      linear("output");
    }
    const auto ffn = build.scope("ffn");
    for (const char* name : {"w1", "w3", "w2"}) linear(name);
  }
  return build.finish();
}

// Counting by hand easily gives a wrong plan: "recompute wq, save wkv_a, recompute wkv_b, save wo"
// and "recompute w1, save w2, recompute w3". The policy increments its count before it decides, and
// the model calls w3 before w2.
TEST_CASE(
    "if a policy keeps every second matmul, the table says whether each matmul is odd or even",
    "[golden]") {
  const Trace trace = latent_layer();
  const Plan split = plan_of("sac_split(attn: sac_titan, ffn: sac_titan)", trace);
  std::string kept;
  for (const RegionType& type : split.types) {
    for (const PlannedOp& op : type.ops) {
      if (op.treatment == Treatment::kSave) kept += op.scope + " ";
    }
  }
  CHECK(kept == "attention.query attention.kv_up attention.core ffn.w1 ffn.w2 ");
  check_golden("every_second_matmul.txt", plan_to_text(split, trace, "", kAllColumns));
}

TEST_CASE("on a narrow terminal, the reason for keeping an op is on the next line") {
  const Trace trace = testing::toy_llama({.layers = 4});
  const std::string text = kept_to_text(plan_of("attn_only", trace), trace, "", 40);
  CHECK_THAT(text, Catch::Contains("\n    reason "));
}

TEST_CASE("a plan of another model cannot be printed") {
  const Plan plan = plan_of("full", testing::toy_llama({.layers = 4}));
  const Trace other = testing::toy_llama({.layers = 3});
  CHECK_THROWS_AS(plan_to_text(plan, other, "", kAllColumns), std::invalid_argument);
  CHECK_THROWS_AS(kept_to_text(plan, other, "", kAllColumns), std::invalid_argument);
}

}  // namespace
}  // namespace rematch
