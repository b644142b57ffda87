#include "policies/catalogue/resolve.h"
#include "policies/base/rejected.h"

#include <algorithm>
#include "tests/support/catch.h"

#include "policies/catalogue/catalogue.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::toy_biased;
using testing::toy_llama;
using testing::TraceBuilder;

Policy policy(std::string_view text) { return std::get<Policy>(parse_policy(text)); }

Plan resolved(const Policy& rule, const Trace& trace, NoEffect no_effect = NoEffect::kReject) {
  const auto result = resolve(rule, trace, no_effect);
  if (const auto* rejected = std::get_if<Rejected>(&result)) FAIL(rejected->message);
  return std::get<Plan>(result);
}
Plan resolved(std::string_view text, const Trace& trace) { return resolved(policy(text), trace); }

std::string message(const Policy& rule, const Trace& trace) {
  const auto result = resolve(rule, trace);
  REQUIRE(std::holds_alternative<Rejected>(result));
  CHECK(std::get<Rejected>(result).message.find('\n') == std::string::npos);
  return std::get<Rejected>(result).message;
}
std::string message(std::string_view text, const Trace& trace) {
  return message(policy(text), trace);
}

std::vector<std::string> saved_names(const RegionType& type) {
  std::vector<std::string> names;
  for (const PlannedOp& op : type.ops) {
    if (op.treatment == Treatment::kSave) names.push_back(op.name);
  }
  return names;
}

const PlannedOp& find(const RegionType& type, std::string_view name, int nth = 1) {
  for (const PlannedOp& op : type.ops) {
    if (op.name == name && --nth == 0) return op;
  }
  throw std::runtime_error("no op " + std::string(name));
}

TEST_CASE("a plan names its model, its trace and its policy") {
  const Trace trace = toy_llama();
  const Plan plan = resolved("nth_last( 2 )", trace);
  CHECK(plan.policy == "nth_last(2)");
  CHECK(plan.model == "toy_llama");
  CHECK(plan.dimensions == trace.dimensions);
  CHECK(plan.dtype == trace.dtype);
  CHECK(plan.trace_sha256 == trace_sha256(trace));
}

TEST_CASE(
    "policy none has no regions; policy full has one region per block, all of the same type") {
  CHECK(resolved("none", toy_llama()).regions.empty());
  const Trace trace = toy_llama({.layers = 4});
  const Plan plan = resolved("full", trace);
  REQUIRE(plan.regions.size() == 4);
  REQUIRE(plan.types.size() == 1);
  CHECK(plan.types[0].early_stop);
  CHECK_FALSE(resolved("full_nostop", trace).types[0].early_stop);
  CHECK(saved_names(plan.types[0]).empty());
  CHECK(plan.types[0].ops.size() ==
        static_cast<std::size_t>(trace.scopes[trace.blocks[0].scope].end_op -
                                 trace.scopes[trace.blocks[0].scope].first_op));
}

TEST_CASE("scopes in a plan are relative to the block") {
  const Trace trace = toy_llama({.layers = 4});
  const auto scope_of_attention = [&](std::string_view text, int nth) {
    return find(resolved(text, trace).types.at(0), "rematch::attention", nth).scope;
  };
  CHECK(scope_of_attention("full", 1) == "attention");
  CHECK(scope_of_attention("segments(2)", 1) == "+0.attention");
  CHECK(scope_of_attention("segments(2)", 2) == "+1.attention");
  CHECK(scope_of_attention("root", 1) == "blocks.0.attention");
  CHECK(resolved("full", trace).types.at(0).ops.back().scope.empty());
  CHECK(resolved("segments(2)", trace).types.size() == 1);
}

TEST_CASE("every op of a region has a treatment, a reason and the bytes that it allocates") {
  // With tokens 8, dim 16 and float32, a block-wide activation has 8 * 16 * 4 bytes.
  const RegionType type = resolved("save_mm", toy_llama()).types.at(0);
  const PlannedOp& mm = find(type, "aten::mm");
  CHECK(mm.treatment == Treatment::kSave);
  CHECK(mm.reason == "matches aten::mm");
  CHECK(mm.bytes == Bytes{8 * 16 * 4});
  const PlannedOp& view = find(type, "aten::view");
  CHECK(view.treatment == Treatment::kRecompute);
  CHECK(view.reason == "view: free");
  CHECK(view.bytes == Bytes{0});
  const PlannedOp& in_place = find(type, "aten::add_.Scalar");
  CHECK(in_place.treatment == Treatment::kRecompute);
  CHECK(in_place.reason == "writes in place: always executed");
  CHECK(in_place.bytes == Bytes{0});
  CHECK(find(type, "aten::silu").reason == "not in the save list");
  CHECK(find(resolved("full", toy_llama()).types.at(0), "aten::silu").reason == "nothing is saved");
  // Attention returns an output of 8 * 16 and the log-sum-exp of 2 heads * 8 tokens.
  CHECK(find(type, "rematch::attention").bytes == Bytes{8 * 16 * 4 + 2 * 8 * 4});
}

TEST_CASE("ops in a save list are kept") {
  const Trace trace = toy_llama();
  CHECK(saved_names(resolved("attn_only", trace).types.at(0)) ==
        std::vector<std::string>{"rematch::attention"});
  CHECK(saved_names(resolved("save_mm", trace).types.at(0)) ==
        std::vector<std::string>(7, "aten::mm"));
  CHECK(saved_names(resolved("save_compute", trace).types.at(0)).size() == 8);
  CHECK(saved_names(resolved("save_mm", toy_biased()).types.at(0)) ==
        std::vector<std::string>(7, "aten::addmm"));
}

// The last matmul of a block is the down projection. Only the block's final add reads its result,
// and nothing needs that add again: backward of an add reads no input. The output projection's
// result also goes into an add, but the second norm must recompute this add.
TEST_CASE("a kept result that neither backward nor recompute reads is a dead save") {
  const RegionType type = resolved("save_mm", toy_llama()).types.at(0);
  std::vector<bool> dead;
  for (const PlannedOp& op : type.ops) {
    if (op.treatment == Treatment::kSave) dead.push_back(op.dead_save);
  }
  CHECK(dead == std::vector<bool>{false, false, false, false, false, false, true});
}

// The block computes sum(silu(mm)). Backward of silu reads the matmul's result, but no recomputed
// op reads it.
TEST_CASE("a packed result is not a dead save even if no recompute reads it") {
  TraceBuilder build("packed");
  ValueId x = build.outside({4, 4}, "float32", true);
  {
    const auto scope = build.scope("blocks", 0);
    const ValueId product =
        build.call("aten::mm", {x, build.parameter({4, 4})}, {4, 4}, {{0, 1}, {}});
    const ValueId gate = build.call("aten::silu", {product}, {4, 4}, {{0}, {}});
    x = build.call("aten::sum", {gate}, {});
  }
  const Plan plan = resolved("save_mm", build.finish());
  CHECK_FALSE(find(plan.types[0], "aten::mm").dead_save);
}

TEST_CASE(
    "a result that a later op overwrites is recomputed, even if the save list contains the op of "
    "the result") {
  TraceBuilder build("overwritten");
  ValueId x = build.outside({4, 4}, "float32", true);
  {
    const auto scope = build.scope("blocks", 0);
    const ValueId weight = build.parameter({4, 4});
    const ValueId first = build.call("aten::mm", {x, weight}, {4, 4}, {{0, 1}, {}});
    build.in_place("aten::relu_", {first});
    x = build.call("aten::mm", {first, weight}, {4, 4}, {{0, 1}, {}});
    x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
  }
  const RegionType type = resolved("save_mm", build.finish()).types.at(0);
  CHECK(find(type, "aten::mm", 1).treatment == Treatment::kRecompute);
  CHECK(find(type, "aten::mm", 1).reason == "matches aten::mm, but is written in place later");
  CHECK_FALSE(find(type, "aten::mm", 1).dead_save);
  CHECK(find(type, "aten::mm", 2).treatment == Treatment::kSave);
}

TEST_CASE("an alternating policy counts matches in each region and keeps every second match") {
  Policy odd = policy("full");
  odd.name = "odd";
  odd.no_effect_is_intended = false;
  odd.alternate = Alternation{{{"", "aten::mm", std::nullopt}}, {}, Alternation::Keep::kOdd};
  const auto kept = [](const Policy& rule) {
    std::string letters;
    const Plan plan = resolved(rule, toy_llama({.layers = 2}));
    CHECK(plan.types.size() == 1);  // counting starts again at 1 in the second block
    for (const PlannedOp& op : plan.types[0].ops) {
      if (op.name == "aten::mm") letters += op.treatment == Treatment::kSave ? 'S' : 'r';
    }
    return letters;
  };
  // The matmuls are wq wk wv wo w1 w3 w2.
  CHECK(kept(odd) == "SrSrSrS");
  Policy even = odd;
  even.alternate->keep = Alternation::Keep::kEven;
  CHECK(kept(even) == "rSrSrSr");
  Policy excluding = odd;  // the second mm of attention, wk, is not counted
  excluding.alternate->exclude = {{"*.attention", "aten::mm", 2}};
  CHECK(kept(excluding) == "SrrSrSr");
}

TEST_CASE(
    "the exclude list overrides every other list; an inverse policy keeps all ops outside its "
    "list") {
  Policy rule = policy("save_mm");
  rule.exclude = {{"*.ffn", "aten::mm", std::nullopt}};
  const RegionType type = resolved(rule, toy_llama()).types.at(0);
  CHECK(saved_names(type).size() == 4);
  CHECK(find(type, "aten::mm", 5).reason == "excluded by *.ffn::aten::mm");

  Policy inverse = policy("full");
  inverse.no_effect_is_intended = false;
  inverse.inverse = true;
  inverse.recompute = {{"", "aten::silu", std::nullopt}};
  const RegionType all_but = resolved(inverse, toy_llama()).types.at(0);
  CHECK(find(all_but, "aten::silu").treatment == Treatment::kRecompute);
  CHECK(find(all_but, "aten::silu").reason == "matches aten::silu");
  CHECK(find(all_but, "aten::rsqrt").treatment == Treatment::kSave);
  CHECK(find(all_but, "aten::rsqrt").reason == "not in the recompute list");
}

TEST_CASE("ops in an offload list are offloaded") {
  Policy rule = policy("full");
  rule.no_effect_is_intended = false;
  rule.moved_to[Store::kHost].results = {{"", "attention_forward", std::nullopt}};
  const RegionType type = resolved(rule, toy_llama()).types.at(0);
  CHECK(find(type, "rematch::attention").treatment == Treatment::kOffload);
}

TEST_CASE("the reason given for a recomputed random op says that its draws are replayed") {
  TraceBuilder build("random");
  ValueId x = build.outside({4, 4}, "float32", true);
  {
    const auto scope = build.scope("blocks", 0);
    const ValueId noise = build.call("aten::rand_like", {x}, {4, 4});
    build.last_op_draws();
    x = build.call("aten::mul.Tensor", {x, noise}, {4, 4}, {{1, 0}, {}});
  }
  CHECK(find(resolved("full", build.finish()).types.at(0), "aten::rand_like").reason ==
        "nothing is saved; its draws are replayed");
}

TEST_CASE("the error for a save list without matches lists the ops of the regions") {
  Policy rule = policy("full");
  rule.name = "only_mm";
  rule.no_effect_is_intended = false;
  rule.save = {{"", "aten::mm", std::nullopt}};
  CHECK(message(rule, toy_biased()) ==
        "only_mm: nothing in its regions matches aten::mm; use the name or class of an op "
        "in its regions: aten::addmm, aten::pow.Tensor_Scalar, aten::mean.dim, aten::rsqrt, "
        "aten::mul.Tensor, rematch::attention, aten::add.Tensor, aten::silu");
  rule.save.assign(13, {"", "aten::mm", std::nullopt});
  CHECK_THAT(message(rule, toy_biased()), Catch::Contains("matches aten::mm, ") &&
                                              Catch::Contains("aten::mm, ...; use the name"));
  rule.save = {{"", "aten::view", std::nullopt}};  // a view is never kept
  CHECK_THAT(message(rule, toy_biased()), Catch::Contains("nothing in its regions matches"));
}

TEST_CASE("a policy that unintentionally has no effect is rejected") {
  const Trace trace = toy_llama({.layers = 4});
  CHECK(message("first_n(4)", trace) ==
        "first_n(4) recomputes every block of toy_llama completely: the policy is the same as "
        "full; use that policy instead, or pass --allow-no-effect to use this policy anyway");
  CHECK(message("skip_list([0,1,2,3])", trace) ==
        "skip_list([0,1,2,3]) checkpoints nothing of toy_llama: the policy is the same as none; "
        "use that policy instead, or pass --allow-no-effect to use this policy anyway");
  CHECK_THAT(message("only_list([0,1,2,3])", trace), Catch::Contains("the same as full"));
  CHECK_THAT(message("nth_first(2)", toy_llama({.layers = 1})), Catch::Contains("1 layer"));
  CHECK(resolved(policy("first_n(4)"), trace, NoEffect::kAllow).regions.size() == 4);
  for (const char* intended : {"nth_last(1)", "nth_first(1)", "skip_list([])", "segments(1)"}) {
    CAPTURE(intended);
    CHECK(resolved(intended, trace).regions.size() == 4);
  }
  CHECK(resolved("only_list([])", trace).regions.empty());
  CHECK(resolved("skip_nth(1)", trace).regions.empty());
  for (const char* different : {"full_nostop", "first_n(3)", "attn_only", "root", "segments(4)"}) {
    CAPTURE(different);
    CHECK_FALSE(resolved(different, trace).regions.empty());
  }
}

TEST_CASE("regions with different ops have different types") {
  TraceBuilder build("two_types");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < 4; ++layer) {
    const auto scope = build.scope("blocks", layer);
    x = build.call(layer % 2 == 0 ? "aten::silu" : "aten::gelu", {x}, {4, 4}, {{0}, {}});
  }
  const Plan plan = resolved("full", build.finish());
  REQUIRE(plan.regions.size() == 4);
  CHECK(plan.regions[0].type == plan.regions[2].type);
  CHECK(plan.regions[1].type == plan.regions[3].type);
  CHECK(plan.types.size() == 2);
}

}  // namespace
}  // namespace rematch
