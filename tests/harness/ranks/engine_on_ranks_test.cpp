// Tests the engine with real asynchronous collectives between processes, over Gloo. One process
// starts every collective late.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <random>
#include <thread>

#include "harness/ranks/collective_log.h"
#include "policies/trace/collective.h"
#include "tests/support/catch.h"
#include "tests/support/collective_networks.h"
#include "tests/support/networks.h"
#include "tests/support/rank_processes.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/slow_group.h"

namespace rematch::testing {
namespace {

constexpr const char* kLate = "late";
// How late this rank starts a collective. If the other rank does not wait, it reads the
// collective's result before the result has arrived.
constexpr std::chrono::milliseconds kDelay{1};

class LateForCollectives final : public OpObserver {
 public:
  explicit LateForCollectives(bool is_late) : is_late_(is_late) {}
  void about_to_run(const c10::OperatorHandle& op, Phase, const torch::jit::Stack&) override {
    const bool starts = collective_part(op.operator_name().name) == CollectivePart::kStart;
    if (is_late_ && starts) std::this_thread::sleep_for(kDelay);
  }
  void executed(const c10::OperatorHandle&, Phase, const torch::jit::Stack&) override {}

 private:
  bool is_late_;
};

// With seed 0, recomputes all ops. With any other seed, chooses at random for each op.
Plan plan_by_chance(const Trace& trace, std::uint32_t seed, bool early_stop) {
  return plan_of_blocks(
      trace,
      [seed](int layer, int op) {
        std::mt19937 dice(seed * 1000003U + static_cast<unsigned>(layer * 131 + op));
        dice.discard(3);
        return seed != 0 && dice() % 2 == 0;
      },
      early_stop);
}

TEST_CASE("rank: recompute over asynchronous Gloo", "[.rank]") {
  Ranks ranks = this_rank({{kLate, {0, 1}}}, RanksOptions::Transport::kAsynchronousGloo);
  LateForCollectives late(ranks.rank() == 1);
  for (const NamedNetwork& network : collective_networks(kLate)) {
    CAPTURE(network.name);
    const Outcome plain = run_plain(network);
    const Trace trace = trace_of(network);
    for (std::uint32_t seed = 0; seed < num_seeds(2); ++seed) {
      for (const bool early_stop : {true, false}) {
        const Plan plan = plan_by_chance(trace, seed, early_stop);
        for (const Schedule schedule : kSchedules) {
          CAPTURE(seed, early_stop, to_string(schedule));
          CollectiveLog log;
          OpObservers both({&log, &late});
          const OpObserverGuard observe(&both);
          log.begin_step();
          CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
          CHECK(c10d::get_work_registry_size() == 0);
          CHECK_NOTHROW(log.compare(ranks));
          CHECK_FALSE(log.lines().empty());
        }
      }
    }
  }
}

TEST_CASE("recompute over asynchronous Gloo with a late rank is bitwise equal to the plain run") {
  CHECK(failure_of_ranks(2, "rank: recompute over asynchronous Gloo") == "");
}

}  // namespace
}  // namespace rematch::testing
