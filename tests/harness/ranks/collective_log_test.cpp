#include "harness/ranks/collective_log.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "harness/measure/op_counter.h"
#include "models/scope/scope.h"
#include "tests/support/catch.h"
#include "tests/support/collective_networks.h"
#include "tests/support/networks.h"
#include "tests/support/rank_processes.h"
#include "tests/support/schedules.h"
#include "tests/support/slow_group.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

constexpr const char* kLogged = "all";

at::Tensor summed(const at::Tensor& x) { return wait_for(start_all_reduce(x, kLogged)); }

void exchange_rows(const at::Tensor& x, const std::vector<std::int64_t>& out,
                   const std::vector<std::int64_t>& in) {
  torch::jit::Stack stack{x, out, in, kLogged};
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("_c10d_functional::all_to_all_single", "")
      .callBoxed(&stack);
  wait_for(stack.front().toTensor());
}

std::string refusal_by_all(CollectiveLog& log, Ranks& ranks) {
  try {
    log.compare(ranks);
  } catch (const RanksError& error) {
    return error.what();
  }
  return {};
}

// An all-gather makes 8 x 12 floats from 4 x 12, and a reduce-scatter makes 4 x 12 from 8 x 12.
// Both are counted as 384 bytes, the size of the larger tensor.
TEST_CASE("collectives of a recomputed step are counted by kind, phase and group, with bytes") {
  const PretendedRanks ranks(0, {{kLogged, {0, 1}}});
  const NamedNetwork network = collective_networks(kLogged).at(1);
  REQUIRE(network.name == "sequence parallel");
  const Plan plan = plan_of_blocks(trace_of(network), [](int, int) { return false; });
  OpCounter counter;
  CollectiveLog log;
  OpObservers both({&log, &counter});
  {
    const OpObserverGuard observe(&both);
    run_engine(network, plan, Schedule::kOnDemand);
  }
  const auto forward = static_cast<std::size_t>(Phase::kForward);
  const auto recompute = static_cast<std::size_t>(Phase::kRecompute);
  const auto backward = static_cast<std::size_t>(Phase::kBackward);
  using OfKind = std::map<std::string, std::int64_t>;
  const CollectiveLog::Totals& totals = log.totals();
  CHECK(totals.executed[forward] == OfKind{{"all_gather", 3}, {"reduce_scatter", 3}});
  CHECK(totals.executed[recompute] == OfKind{{"all_gather", 3}});
  CHECK(totals.executed[backward] == OfKind{{"all_gather", 3}, {"reduce_scatter", 3}});
  const std::int64_t rows = network.make().input.size(0) * 2;
  CHECK(totals.bytes[recompute] == OfKind{{"all_gather", 3 * rows * 12 * 4}});
  CHECK(totals.bytes[backward].at("reduce_scatter") == 3 * rows * 12 * 4);
  CHECK(log.totals_of_groups().at(kLogged).executed == totals.executed);
  CHECK(counter.record(1).by_op[recompute].at("_c10d_functional::all_gather_into_tensor") == 3);
}

TEST_CASE("a collective is listed with group, type, shape, phase and origin of its input") {
  const PretendedRanks ranks(0, {{kLogged, {0, 1}}});
  const at::Tensor outside = at::ones({4, 2});
  CollectiveLog log;
  const OpObserverGuard observe(&log);
  log.begin_step();
  summed(outside);
  const at::Tensor made = outside.mul(2);
  const at::Tensor other = outside.add(1).to(at::kDouble);
  wait_for(start_all_to_all(made, kLogged));
  summed(other);
  const std::string begin = "forward: all_";
  CHECK(log.lines() ==
        std::vector<std::string>{
            begin + "reduce in 'all' of Float [4, 2]",
            begin + "to_all in 'all' of Float [*, 2] (made by aten::mul, ops since: 2)",
            begin +
                "reduce in 'all' of Double [4, 2] (made by aten::_to_copy, collectives since: 1)"});
}

// Both ranks reduce the same two tensors, but in different orders. Gloo therefore adds tensors that
// do not belong together.
TEST_CASE("rank: a swap", "[.rank]") {
  Ranks ranks = this_rank({group_of_all(kLogged)});
  const at::Tensor x = at::ones({2, 3}).mul(1 + ranks.rank());
  CollectiveLog log;
  const OpObserverGuard observe(&log);
  for (int step = 0; step < 3; ++step) {
    const bool swaps = step == 2 && ranks.rank() == 1;
    log.begin_step();
    const at::Tensor a = x.mul(2);
    const at::Tensor b = x.mul(100);
    const at::Tensor first = summed(swaps ? b : a);
    summed(swaps ? a : b);
    CHECK((first.equal(at::full({2, 3}, 6.0)) || step == 2));
    const std::string refusal = refusal_by_all(log, ranks);
    if (step < 2) {
      CHECK(refusal == "");
    } else {
      CHECK(refusal ==
            "ranks 0 and 1 differ in collective 1 of the step, so their values are wrong: rank 0 "
            "has forward: all_reduce in 'all' of Float [2, 3] (made by aten::mul, ops since: 1); "
            "rank 1 "
            "has forward: all_reduce in 'all' of Float [2, 3] (made by aten::mul, ops since: 0)");
    }
  }
}

TEST_CASE(
    "the error for two swapped collectives of equal shape names the ranks and the collective") {
  CHECK(failure_of_ranks(2, "rank: a swap") == "");
}

TEST_CASE("rank: an additional collective on one rank", "[.rank]") {
  Ranks ranks = this_rank({group_of_all(kLogged), {"own", {this_place().rank}}});
  const at::Tensor x = at::ones({2, 3});
  CollectiveLog log;
  const OpObserverGuard observe(&log);
  log.begin_step();
  summed(x);
  if (ranks.rank() == 2) wait_for(start_all_reduce(x, "own"));
  const std::string refusal = refusal_by_all(log, ranks);
  CHECK_THAT(refusal, Contains("ranks 0 and 2 differ in collective 2 of the step") &&
                          Contains("rank 0 has no more collectives; rank 2 has forward: "
                                   "all_reduce in 'own'"));
}

TEST_CASE("a collective that only one rank runs is found") {
  CHECK(failure_of_ranks(3, "rank: an additional collective on one rank") == "");
}

// Two differences between ranks are allowed: how many rows they exchange, because of routing, and
// which ops they run before a collective.
TEST_CASE("rank: allowed differences", "[.rank]") {
  Ranks ranks = this_rank({group_of_all(kLogged)});
  CollectiveLog log;
  const OpObserverGuard observe(&log);
  log.begin_step();
  at::Tensor x = at::ones({4, 3});
  for (int more = 0; more < 3 * ranks.rank(); ++more) x = x.add(1);
  summed(x.mul(2));
  const std::int64_t sent = ranks.rank() == 0 ? 3 : 1;
  const at::Tensor rows = x.slice(0, 0, sent).clone();
  exchange_rows(
      rows, ranks.rank() == 0 ? std::vector<std::int64_t>{1, 1} : std::vector<std::int64_t>{2, 0},
      ranks.rank() == 0 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{1, 0});
  CHECK(refusal_by_all(log, ranks) == "");
}

TEST_CASE(
    "ranks may exchange different numbers of rows, and may run different ops between "
    "collectives") {
  CHECK(failure_of_ranks(2, "rank: allowed differences") == "");
}

}  // namespace
}  // namespace rematch::testing
