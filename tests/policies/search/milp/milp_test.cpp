// Compares the save sets and layer mixes that the search finds with the optima in optima.json.
// make_optima.py computed them with a mixed-integer solver, and describes the problems.
#include <optional>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/predict/region/trace_index.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/save_sets.h"
#include "tests/support/catch.h"
#include "tests/support/ids.h"
#include "tests/support/in_tree.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using testing::Shape;
using testing::TraceBuilder;

Json read_optima() {
  return read_json_file(testing::in_tree("tests/policies/search/milp/optima.json"));
}

// Builds the region of a trace that corresponds to a block. Backward demands a value through an
// additional op that reads it. The additional op never runs again.
class BlockGraph {
 public:
  explicit BlockGraph(const Json& block) : build_("milp", "bool") {
    x_ = build_.outside({1}, "bool", /*needs_grad=*/true);
    costs_.schedule = Schedule::kOnDemand;
    for (const Json& op : block.at("ops")) add(op);
    testing::Saves saves;
    for (std::size_t i = 0; i < block.at("demanded").size(); ++i) {
      saves.inputs.push_back(static_cast<int>(i));
    }
    build_.call("aten::cat", values_of(block.at("demanded")), {1}, saves);
    costs_.op_times.emplace_back(0);
  }

  std::vector<SaveSet> save_sets() {
    const Trace trace = build_.finish();
    const RegionGraph graph = make_region_graph(trace, {0_op, trace.ops.end_id()});
    const SaveSets found = find_save_sets(graph, costs_);
    CHECK(found.time_gap.count() == 0);
    return found.sets;
  }

 private:
  void add(const Json& op) {
    std::vector<ValueId> inputs = values_of(op.at("reads"));
    if (inputs.empty()) inputs.push_back(x_);
    if (op.at("is_view").get<bool>()) {
      outputs_.push_back({build_.view("aten::view", inputs.front(), build_.shape(inputs.front()))});
    } else {
      std::vector<Shape> shapes;
      for (const Json& bytes : op.at("bytes")) shapes.push_back({bytes.get<std::int64_t>()});
      outputs_.push_back(build_.op("aten::silu", inputs, shapes));
    }
    costs_.op_times.emplace_back(op.at("time_ns").get<std::int64_t>());
  }

  // Returns the values that `pairs` name. A pair is the index of an op and the index of one of its
  // outputs.
  std::vector<ValueId> values_of(const Json& pairs) const {
    std::vector<ValueId> values;
    for (const Json& pair : pairs) {
      values.push_back(
          outputs_.at(pair.at(0).get<std::size_t>()).at(pair.at(1).get<std::size_t>()));
    }
    return values;
  }

  TraceBuilder build_;
  SaveSetCosts costs_;
  ValueId x_;
  std::vector<std::vector<ValueId>> outputs_;  // output values of each op
};

// Returns the least time of an item whose bytes do not exceed the budget, or null if there is none.
template <class Item, class BytesOf, class TimeOf>
Json fastest_within(const std::vector<Item>& items, std::int64_t budget, const BytesOf& bytes_of,
                    const TimeOf& time_of) {
  std::optional<std::int64_t> fastest;
  for (const Item& item : items) {
    if (bytes_of(item).count > budget) continue;
    fastest = std::min(fastest.value_or(time_of(item).count()), time_of(item).count());
  }
  return fastest ? Json(*fastest) : Json(nullptr);
}

TEST_CASE("save sets are as fast as the optima of integer programs", "[golden]") {
  const Json optima = read_optima();
  CHECK(optima.at("blocks").size() == 24);
  for (std::size_t i = 0; i < optima.at("blocks").size(); ++i) {
    CAPTURE(i);
    const Json& block = optima.at("blocks").at(i);
    const std::vector<SaveSet> sets = BlockGraph(block).save_sets();
    for (const Json& point : block.at("points")) {
      const auto budget = point.at("budget_bytes").get<std::int64_t>();
      CAPTURE(budget);
      CHECK(fastest_within(
                sets, budget, [](const SaveSet& set) { return set.saved; },
                [](const SaveSet& set) { return set.recompute; }) == point.at("recompute_ns"));
    }
  }
}

std::vector<LayerOption> options_of(const Json& kind) {
  const auto bytes = [&](const char* key) { return Bytes{kind.at(key).get<std::int64_t>()}; };
  std::vector<LayerOption> options;
  for (const SaveSet& set : BlockGraph(kind.at("block")).save_sets()) {
    options.push_back({set.saved, std::max(bytes("fixed_bytes"), set.saved + bytes("beside_bytes")),
                       set.saved + bytes("forward_bytes"), set.recompute, 1});
  }
  return options;
}

MixProblem problem_of(const Json& model) {
  MixProblem problem;
  for (const Json& kind : model.at("kinds")) problem.lists.push_back(options_of(kind));
  problem.list_of_layer = model.at("layers").get<std::vector<int>>();
  const auto growth = model.at("gradient_bytes").get<std::int64_t>();
  const auto num_layers = static_cast<std::int64_t>(problem.list_of_layer.size());
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    problem.gradients.push_back({growth * (num_layers - 1 - layer)});
  }
  problem.head = {model.at("head_bytes").get<std::int64_t>()};
  return problem;
}

TEST_CASE("mixed save sets are as fast as the optima of integer programs", "[golden]") {
  const Json optima = read_optima();
  CHECK(optima.at("models").size() == 16);
  int num_infeasible = 0;
  for (std::size_t i = 0; i < optima.at("models").size(); ++i) {
    CAPTURE(i);
    const Json& model = optima.at("models").at(i);
    const MixFront front = mix_layers(problem_of(model));
    CHECK(front.time_gap.count() == 0);
    for (const Json& point : model.at("points")) {
      const auto budget = point.at("budget_bytes").get<std::int64_t>();
      CAPTURE(budget);
      num_infeasible += point.at("recompute_ns").is_null() ? 1 : 0;
      CHECK(fastest_within(
                front.points, budget, [](const LayerMix& mix) { return mix.peak; },
                [](const LayerMix& mix) { return mix.time; }) == point.at("recompute_ns"));
    }
  }
  CHECK(num_infeasible > 0);
}

}  // namespace
}  // namespace rematch
