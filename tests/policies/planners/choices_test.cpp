// Compares rematch's versions of PyTorch's planners with PyTorch 2.11's own functions on the same
// inputs. tests/parity/planners/make_choices.py recorded PyTorch's choices.
#include <algorithm>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/planners/knapsack.h"
#include "policies/planners/sac_modules.h"
#include "policies/planners/sac_plan.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

Json read_choices(const char* part) {
  return read_json_file(testing::in_tree("tests/parity/planners/choices.json")).at(part);
}

template <class Value>
std::vector<Value> list(const Json& json, const char* key) {
  return json.at(key).get<std::vector<Value>>();
}

std::vector<KnapsackItem> items_of(const Json& choice) {
  std::vector<KnapsackItem> items;
  for (double memory : list<double>(choice, "memory")) items.push_back({memory, 0});
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].runtime = choice.at("runtime").at(i).get<double>();
  }
  return items;
}

KnapsackItem sum_of(const std::vector<KnapsackItem>& items, const std::vector<int>& chosen) {
  KnapsackItem sum;
  for (int index : chosen) {
    sum.memory += items[index].memory;
    sum.runtime += items[index].runtime;
  }
  return sum;
}

TEST_CASE("dp_knapsack saves the same ops as PyTorch's dynamic program", "[parity]") {
  const Json choices = read_choices("knapsacks");
  CHECK(choices.size() == 64);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    CAPTURE(i);
    const Json& choice = choices[i];
    CHECK(dp_knapsack(items_of(choice), choice.at("budget").get<double>()) ==
          list<int>(choice, "dp"));
  }
}

// SciPy's solver stops at a relative gap of 1e-4. Its solutions may exceed the budget by up to
// 1e-6.
TEST_CASE("best_knapsack saves as much time as PyTorch's integer program within the budget",
          "[parity]") {
  constexpr double kGap = 1e-4;
  const Json choices = read_choices("knapsacks");
  for (std::size_t i = 0; i < choices.size(); ++i) {
    CAPTURE(i);
    const std::vector<KnapsackItem> items = items_of(choices[i]);
    const auto budget = choices[i].at("budget").get<double>();
    const KnapsackItem sum = sum_of(items, best_knapsack(items, budget));
    const auto theirs = choices[i].at("ilp_runtime").get<double>();
    CHECK(sum.memory <= budget);
    CHECK(sum.runtime >= theirs * (1 - 1e-9));
    CHECK(sum.runtime <= theirs * (1 + kGap));
  }
}

// In the first instance, the best items take 5 + 22 + 26 of 72 bytes. In the second instance,
// PyTorch's dynamic program drops the item of value 1, because 2^25 + 1 equals 2^25 in float32.
TEST_CASE("best_knapsack solves two instances that PyTorch's solvers get wrong") {
  const std::vector<KnapsackItem> issue = {{25, 25}, {5, 2}, {22, 27}, {26, 28}};
  CHECK(best_knapsack(issue, 72) == std::vector<int>{1, 2, 3});
  const std::vector<KnapsackItem> much = {{0.5, 33'554'432}, {0.25, 1}};
  CHECK(best_knapsack(much, 1) == std::vector<int>{0, 1});
  CHECK(dp_knapsack(much, 1) == std::vector<int>{0});
}

SacOps ops_of(const Json& json) {
  SacOps ops;
  ops.memory_bytes = list<std::int64_t>(json, "memory_bytes");
  ops.runtimes_ms = list<double>(json, "runtimes_ms");
  ops.views = list<int>(json, "views");
  ops.in_place = list<std::pair<int, int>>(json, "in_place");
  if (json.contains("random")) ops.random = list<int>(json, "random");
  if (json.contains("must_store_random")) {
    ops.must_store_random = json.at("must_store_random").get<bool>();
  }
  return ops;
}

TEST_CASE("sac_saves saves as much time as PyTorch's integer program for one module", "[parity]") {
  const Json choices = read_choices("ops");
  int num_infeasible = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    CAPTURE(i);
    const Json& choice = choices[i];
    const SacOps ops = ops_of(choice);
    const auto saves = sac_saves(ops, choice.at("budget").get<double>());
    REQUIRE(saves.has_value() == !choice.at("exact_runtime_ms").is_null());
    if (!saves) {
      ++num_infeasible;
      continue;
    }
    double spared = 0;
    for (std::size_t op = 0; op < saves->size(); ++op) {
      if ((*saves)[op]) spared += ops.runtimes_ms[op];
    }
    CHECK(spared == Approx(choice.at("exact_runtime_ms").get<double>()));
    CHECK(spared >= choice.at("runtime_ms").get<double>() - 1e-9);
  }
  CHECK(num_infeasible > 0);
  CHECK(num_infeasible < 20);
}

double height_at(const std::vector<FittedLine>& lines, double share) {
  double height = lines.front().slope * share + lines.front().intercept;
  for (const auto& line : lines) height = std::max(height, line.slope * share + line.intercept);
  return height;
}

// PyTorch fits two lines to the tradeoff, and searches randomly for the point where they meet. Its
// planner always uses the higher line, even if the second line is less steep than the first.
TEST_CASE("the lines fitted to a module's tradeoff are the same as in PyTorch's estimator",
          "[parity]") {
  for (const Json& choice : read_choices("tradeoffs")) {
    CAPTURE(choice.dump());
    std::vector<FittedLine> theirs;
    for (std::size_t i = 0; i < choice.at("slopes").size(); ++i) {
      theirs.push_back(
          {choice.at("slopes")[i].get<double>(), choice.at("intercepts")[i].get<double>()});
    }
    const std::vector<FittedLine> ours = sac_tradeoff(ops_of(choice));
    CHECK(ours.size() == theirs.size());
    for (const Json& point : choice.at("points")) {
      const auto share = point.at(0).get<double>();
      CHECK(height_at(ours, share) == Approx(height_at(theirs, share)).margin(0.01));
    }
  }
}

SacModel model_of(const Json& choice) {
  SacModel model;
  const std::vector<std::string> post_order = list<std::string>(choice, "post_order");
  for (const Json& node : choice.at("modules")) {
    const auto bytes = [&](const char* key) { return node.at(key).get<std::int64_t>(); };
    SacModule module;
    module.name = node.at("fqn").get<std::string>();
    module.is_leaf = node.at("is_leaf").get<bool>();
    module.post_order = static_cast<int>(
        std::find(post_order.begin(), post_order.end(), module.name) - post_order.begin());
    module.kept_bytes = bytes("act_fw_per_module");
    module.all_bytes = bytes("sac_memory");
    module.total_kept_bytes = bytes("act_total");
    module.gradient_bytes = bytes("act_grad_per_module");
    module.born_bytes = bytes("grad_total");
    module.runtime_ms = node.at("sac_runtime").get<double>();
    for (std::size_t i = 0; i < node.at("slopes").size(); ++i) {
      module.lines.push_back(
          {node.at("slopes")[i].get<double>(), node.at("intercepts")[i].get<double>()});
    }
    model.parameter_bytes = bytes("param_per_module");
    model.modules.push_back(std::move(module));
  }
  return model;
}

TEST_CASE("sac_discards finds the optimum of PyTorch's integer program for modules", "[parity]") {
  constexpr double kGibibyte = 1 << 30;
  constexpr double kRounded = 0.006;  // PyTorch's number is rounded to two digits
  const Json choices = read_choices("modules");
  int num_infeasible = 0;
  int num_checkpointed = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    CAPTURE(i);
    const SacModel model = model_of(choices[i]);
    const double budget = choices[i].at("budget_gib").get<double>() * kGibibyte;
    const auto exact = sac_discards(model, budget, /*gap_ratio=*/0);
    REQUIRE(exact.has_value() == !choices[i].at("exact_recompute_ms").is_null());
    if (!exact) {
      ++num_infeasible;
      continue;
    }
    CHECK(exact->is_proven);
    const auto best = choices[i].at("exact_recompute_ms").get<double>();
    CHECK(exact->recompute_ms == Approx(best).margin(kRounded));
    const auto near = sac_discards(model, budget);
    REQUIRE(near.has_value());
    CHECK(near->recompute_ms <= best * (1 + 2 * kSacGapRatio) + kRounded);
    for (const auto& discard : exact->discards) num_checkpointed += discard ? 1 : 0;
  }
  CHECK(num_infeasible > 0);
  CHECK(num_checkpointed > 10);
}

// In floating point, ten times 0.03 add up to more than 0.3, but 0.03 can be subtracted ten times
// from 0.3. So all tests of whether an item fits must use the same formula.
TEST_CASE("best_knapsack tests consistently whether an item fits, even if rounding matters") {
  const std::vector<KnapsackItem> items(10, {0.03, 3.0});
  CHECK(best_knapsack(items, 0.3).size() == 9);
}

}  // namespace
}  // namespace rematch
