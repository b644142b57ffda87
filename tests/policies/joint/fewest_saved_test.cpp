// Compares minimum cuts with the best of all choices of saved values.
#include "policies/joint/fewest_saved.h"

#include <algorithm>
#include <random>

#include "tests/policies/joint/graph_of.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

int draw(std::mt19937& rng, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(rng);
}

// Returns a random network of up to eight values. Each value may be computed from earlier values.
CutNetwork drawn_network(std::uint32_t seed) {
  std::mt19937 rng(seed);
  CutNetwork network;
  const int num_values = draw(rng, 1, 8);
  for (int index = 0; index < num_values; ++index) {
    CutValue value{.weight = draw(rng, 1, 9), .is_wanted = draw(rng, 0, 9) < 4};
    if (draw(rng, 0, 9) < 7) {
      value.recompute = draw(rng, 0, 1) * draw(rng, 1, 9);
      for (int other = 0; other < index; ++other) {
        if (draw(rng, 0, 2) == 0) value.reads.push_back(other);
      }
    }
    network.push_back(std::move(value));
  }
  return network;
}

// Returns the cost of saving these values, and of recomputing the values that are needed and not
// saved. Absent: a value that is needed cannot be recomputed.
std::optional<std::int64_t> cost(const CutNetwork& network, const std::vector<int>& saved) {
  std::vector<bool> is_saved(network.size(), false);
  std::int64_t total = 0;
  for (const int index : saved) {
    is_saved[index] = true;
    total += network[index].weight;
  }
  std::vector<bool> is_needed(network.size(), false);
  for (std::size_t index = network.size(); index-- > 0;) {
    const CutValue& value = network[index];
    if ((!value.is_wanted && !is_needed[index]) || is_saved[index]) continue;
    if (!value.recompute) return std::nullopt;
    total += *value.recompute;
    for (const int read : value.reads) is_needed[read] = true;
  }
  return total;
}

TEST_CASE("no choice of values costs less than the minimum cut") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const CutNetwork network = drawn_network(seed);
    std::optional<std::int64_t> least;
    for (std::uint32_t choice = 0; choice < (1U << network.size()); ++choice) {
      std::vector<int> saved;
      for (std::size_t index = 0; index < network.size(); ++index) {
        if ((choice >> index & 1U) != 0) saved.push_back(static_cast<int>(index));
      }
      const std::optional<std::int64_t> total = cost(network, saved);
      if (total && (!least || *total < *least)) least = total;
    }
    CHECK(cost(network, minimum_cut(network)) == least);
  }
}

// Value 1 is computed from value 0, and both weigh the same.
TEST_CASE("of equal cuts, the one that is nearest to backward is taken") {
  const CutNetwork network = {{.weight = 3},
                              {.weight = 3, .is_wanted = true, .recompute = 0, .reads = {0}}};
  CHECK(minimum_cut(network) == std::vector<int>{1});
}

// forward: matmul (8 bytes) -> exp (8) -> sum (2). Backward reads the results of exp and sum.
class Chain {
 public:
  Chain() {
    testing::GraphBuilder builder;
    const NodeId weight = builder.input(8);
    matmul = builder.forward({weight}, 8, {.time = std::chrono::nanoseconds(100)});
    exp = builder.forward({matmul}, 8,
                          {.is_elementwise = true,
                           .time = std::chrono::nanoseconds(5),
                           .saving = std::chrono::nanoseconds(2)});
    sum = builder.forward({exp}, 2, {.is_reduction = true, .time = std::chrono::nanoseconds(5)});
    const NodeId tangent = builder.tangent(2);
    const NodeId gradient = builder.backward({tangent, exp, sum}, 8);
    graph = builder.made({sum}, {gradient});
  }

  NodeId matmul;
  NodeId exp;
  NodeId sum;
  JointGraph graph;
};

TEST_CASE("elementwise ops run again, and other ops only if the plan allows it") {
  const Chain chain;
  FewestSaved fewest(chain.graph);
  CHECK(fewest.values({}, {.shift = 1}) == NodeIds{chain.matmul, chain.sum});
  CHECK(fewest.values({chain.matmul}, {.shift = 1}) == NodeIds{chain.sum});
}

// Saving the result of exp takes 2 ns, recomputing it 5 ns. Moving its 8 bytes once more takes 8
// ns.
TEST_CASE("the fastest step saves what takes longer to recompute") {
  const Chain chain;
  FewestSaved fewest(chain.graph);
  JointGraph at_one_byte_per_ns = chain.graph;
  at_one_byte_per_ns.bytes_per_second = 1e9;
  CHECK(FewestSaved(at_one_byte_per_ns).values({}, {.traffic_per_byte = 0}) ==
        NodeIds{chain.exp, chain.sum});
}

// Without a boundary between the layers, x could be read instead.
TEST_CASE("a value that another layer reads is not recomputed") {
  testing::GraphBuilder builder;
  const NodeId x = builder.input(8);
  const NodeId first = builder.forward({x}, 8, {.layer = 0, .is_elementwise = true});
  const NodeId between = builder.forward({first}, 8, {.layer = 0, .is_elementwise = true});
  const NodeId last = builder.forward({between}, 16, {.layer = 1, .is_elementwise = true});
  const NodeId gradient = builder.backward({builder.tangent(8), last}, 8);
  const JointGraph graph = builder.made({}, {gradient});
  CHECK(FewestSaved(graph).values({}, {}) == NodeIds{between});
}

}  // namespace
}  // namespace rematch
