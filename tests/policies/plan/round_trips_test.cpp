// Tests that values written as JSON or text are read back unchanged.
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/plan/plan_json.h"
#include "policies/plan/policy_json.h"
#include "tests/support/arbitrary_policy.h"
#include "tests/support/schema_check.h"

namespace rematch::testing {
namespace {

TEST_CASE("a random policy is read back unchanged and fits the schema", "[property]") {
  check_property("policy to JSON and back", [] {
    const Policy policy = *arbitrary_policy();
    const Json json = policy_to_json(policy);
    RC_ASSERT(policy_from_json(parse_json(json.dump(), "policy")) == policy);
    RC_ASSERT(schema_error(json, "policy").value_or("") == "");
  });
}

TEST_CASE("the text of a random selector parses to the same selector", "[property]") {
  check_property("selector to text and back", [] {
    Selector selector = *arbitrary_selector();
    // Generates a path from characters that patterns may contain.
    selector.scope_pattern = *rc::gen::container<std::string>(rc::gen::element('a', '9', '_', '*'));
    const auto read = parse_selector(to_string(selector));
    RC_ASSERT(std::holds_alternative<Selector>(read));
    RC_ASSERT(std::get<Selector>(read) == selector);
  });
}

rc::Gen<RegionType> arbitrary_region_type() {
  return rc::gen::exec([] {
    RegionType type;
    type.early_stop = *rc::gen::arbitrary<bool>();
    type.whole_on_demand = *rc::gen::arbitrary<bool>();
    type.by_demand = *rc::gen::arbitrary<bool>();
    const auto small = rc::gen::inRange(0, 9);
    const int steps = *rc::gen::inRange(0, 3);
    for (int i = 0; i < steps; ++i) {
      type.demand_steps.push_back({*small, *rc::gen::container<std::vector<int>>(small),
                                   *rc::gen::container<std::vector<int>>(small)});
    }
    const int ops = *rc::gen::inRange(0, 12);
    for (int i = 0; i < ops; ++i) {
      type.ops.push_back(
          {*rc::gen::element<std::string>("aten::mm", "aten::add.Tensor"),
           *rc::gen::element<std::string>("", "ffn", "+1.attention.core"),
           {*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)},
           *rc::gen::element(Treatment::kSave, Treatment::kRecompute, Treatment::kOffload),
           *rc::gen::element<std::string>("view: free", "matches \"x\", here y"),
           *rc::gen::arbitrary<bool>(),
           *rc::gen::arbitrary<bool>()});
    }
    return type;
  });
}

rc::Gen<ShapePlan> arbitrary_shape() {
  return rc::gen::exec([] {
    ShapePlan shape{
        "nth_last(2)", "toy_llama", {{"dim", 16}, {"layers", 8}}, "float32", "abc", {}, {}};
    shape.types =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<RegionType>>(arbitrary_region_type()));
    const int regions = *rc::gen::inRange(0, 6);
    for (int layer = 0; layer < regions; ++layer) {
      const std::string scope = "blocks." + std::to_string(layer);
      const int type = *rc::gen::inRange(0, static_cast<int>(shape.types.size()));
      shape.regions.push_back({scope, scope, type, {layer}});
    }
    return shape;
  });
}

rc::Gen<HiddenEffects> arbitrary_effects() {
  return rc::gen::exec([] {
    const auto positions = rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9));
    HiddenEffects effects;
    for (const char* name : {"a:B", "lib.ops:Outer.Inner"}) {
      if (!*rc::gen::arbitrary<bool>()) continue;
      effects.opaque_functions.push_back({name, std::nullopt});
      if (*rc::gen::arbitrary<bool>()) effects.opaque_functions.back().overwrites = *positions;
    }
    for (const char* op : {"lib::a", "lib::b.out"}) {
      if (*rc::gen::arbitrary<bool>()) effects.silent_writers.push_back({op, *positions});
      if (*rc::gen::arbitrary<bool>()) effects.kept_ops.emplace_back(op);
    }
    return united(effects, {});
  });
}

TEST_CASE("a random plan is read back unchanged and fits the schema", "[property]") {
  check_property("plan to JSON and back", [] {
    Plan plan{*arbitrary_shape(), {}};
    const int num_other_shapes = *rc::gen::inRange(0, 3);
    for (int shape = 0; shape < num_other_shapes; ++shape) {
      plan.other_shapes.push_back(*arbitrary_shape());
    }
    plan.hidden = *arbitrary_effects();
    const Json json = plan_to_json(plan);
    const Plan read = plan_from_json(parse_json(json.dump(), "plan"));
    RC_ASSERT(read == plan);
    RC_ASSERT(plan_sha256(read) == plan_sha256(plan));
    RC_ASSERT(schema_error(json, "plan").value_or("") == "");
  });
  CHECK(plan_from_json(plan_to_json(Plan{})) == Plan{});
}

}  // namespace
}  // namespace rematch::testing
