// Turns over made-up machines: who runs when, when it ends, and what stopping early does to claims.
#include "harness/run/turns.h"

#include <random>

#include "tests/support/catch.h"

namespace rematch {
namespace {

// Steps of 1 ms, times a speed for each point and luck for each process.
class Machine {
 public:
  Machine(std::vector<double> speeds, double process_noise)
      : speeds_(std::move(speeds)), process_noise_(process_noise) {}

  PointRecord measure(const Arm& arm, int block, bool from_disk) {
    order.emplace_back(arm.point);
    if (from_disk) ++taken_from_disk;
    PointRecord record;
    if (failing && failing->first == arm.point && failing->second == block) {
      record.status = PointStatus::kCrash;
      return record;
    }
    const double luck = std::exp(process_noise_ * normal_(generator_));
    TimedBlock time;
    std::vector<std::chrono::nanoseconds>& samples = time.samples.emplace_back();
    for (int step = 0; step < 8; ++step) {
      const double duration = 1e6 * speeds_.at(arm.point) * luck;
      samples.emplace_back(static_cast<std::int64_t>(duration * (1 + 1e-3 * normal_(generator_))));
    }
    record.time = time;
    return record;
  }

  std::vector<std::size_t> order;
  int taken_from_disk = 0;
  std::optional<std::pair<std::size_t, int>> failing;

 private:
  std::vector<double> speeds_;
  double process_noise_;
  std::mt19937_64 generator_{11};
  std::normal_distribution<double> normal_;
};

// Points 0 to n - 1 and, last, point 0 again as the control.
std::vector<Arm> arms_of(std::size_t num_points) {
  std::vector<Arm> arms;
  for (std::size_t point = 0; point < num_points; ++point) arms.push_back({point, false, {}});
  arms.push_back({0, true, {}});
  return arms;
}

int run_turns(
    std::vector<Arm>& arms, Machine& machine, const BlockRule& rule,
    const IsOnDisk& is_on_disk = [](int) { return false; }) {
  return take_turns(arms, /*reference=*/0, rule, is_on_disk,
                    [&](const Arm& arm, int block, bool from_disk) {
                      return machine.measure(arm, block, from_disk);
                    });
}

TEST_CASE("arms take turns so that none always runs first") {
  CHECK(order_of_block(0, 3) == std::vector<std::size_t>{0, 1, 2});
  CHECK(order_of_block(1, 3) == std::vector<std::size_t>{2, 1, 0});
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0);
  CHECK(run_turns(arms, machine, {.least = 2, .most = 2, .precision = 0.02}) == 2);
  CHECK(machine.order == std::vector<std::size_t>{0, 1, 0, 0, 1, 0});
}

TEST_CASE("a steady machine ends at the least number of blocks, an unsteady one at the most") {
  std::vector<Arm> arms = arms_of(3);
  Machine steady({1, 1.2, 1.4}, 0.001);
  CHECK(run_turns(arms, steady, {.least = 4, .most = 8, .precision = 0.02}) == 4);
  for (const Arm& arm : arms) CHECK(arm.blocks.size() == 4);
  CHECK(widest_half_interval(arms, 0).value() <= 0.02);

  arms = arms_of(3);
  Machine unsteady({1, 1.2, 1.4}, 0.2);
  CHECK(run_turns(arms, unsteady, {.least = 4, .most = 8, .precision = 0.02}) == 8);
  CHECK(widest_half_interval(arms, 0).value() > 0.02);
}

TEST_CASE("one arm alone ends when its own step time is known") {
  std::vector<Arm> arms = {{0, false, {}}};
  Machine machine({1}, 0.001);
  CHECK(run_turns(arms, machine, {.least = 3, .most = 9, .precision = 0.02}) == 3);
}

TEST_CASE("an arm that fails in one block goes without it and keeps nobody waiting") {
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0.001);
  machine.failing = {1, 0};
  CHECK(run_turns(arms, machine, {.least = 3, .most = 9, .precision = 0.02}) == 3);
  CHECK(arms[0].blocks.size() == 3);
  CHECK(arms[1].blocks.size() == 2);
}

TEST_CASE("a block is taken from disk whole") {
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0);
  run_turns(arms, machine, {.least = 3, .most = 3, .precision = 0.02},
            [](int block) { return block == 1; });
  CHECK(machine.taken_from_disk == 3);
}

// Stopping when an interval happens to be narrow could make claims bolder than 95 % intervals are.
TEST_CASE("with early stopping and its A/A control, equal arms differ less than once in a hundred",
          "[property]") {
  constexpr int kRuns = 400;
  int alarms = 0;
  int stopped_early = 0;
  Machine machine({1, 1}, 0.01);
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Arm> arms = arms_of(2);
    if (run_turns(arms, machine, {.least = 4, .most = 8, .precision = 0.02}) < 8) ++stopped_early;
    const TimeRecord reference = summarize_blocks(arms[0].blocks);
    const TimeRecord control = summarize_blocks(arms[2].blocks);
    const double floor = floor_of_control(paired_ratio(blocks_of(control), blocks_of(reference)));
    const TimeRecord candidate = summarize_blocks(arms[1].blocks);
    const std::string verdict = ratio_to("none", candidate, reference, floor).verdict;
    alarms += verdict == "faster" || verdict == "slower" ? 1 : 0;
  }
  CAPTURE(stopped_early);
  CHECK(stopped_early > kRuns / 4);  // else this says nothing of stopping
  CHECK(alarms < kRuns / 100);
}

}  // namespace
}  // namespace rematch
