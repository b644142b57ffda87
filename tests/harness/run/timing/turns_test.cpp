// Runs timed rounds on made-up machines. Tests the order in which arms run, when rounds end, and
// how early stopping affects verdicts.
#include "harness/run/timing/turns.h"

#include <functional>
#include <random>

#include "harness/measure/gpu_monitor.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// A made-up machine. The time of a step is 1 ms, multiplied by a factor of the point and a random
// factor of the process.
class Machine {
 public:
  Machine(std::vector<double> speeds, double process_noise)
      : speeds_(std::move(speeds)), process_noise_(process_noise) {}

  PointRecord measure(const Arm& arm, const Turn& turn) {
    order.emplace_back(arm.point);
    turns.push_back(turn);
    if (turn.from_disk) ++taken_from_disk;
    PointRecord record;
    if (failing && failing->first == arm.point && failing->second == turn.round) {
      record.status = PointStatus::kCrash;
      return record;
    }
    const double luck = std::exp(process_noise_ * normal_(generator_));
    TimedRound time;
    std::vector<std::chrono::nanoseconds>& samples = time.samples.emplace_back();
    for (int step = 0; step < 8; ++step) {
      const double duration = 1e6 * speeds_.at(arm.point) * luck;
      samples.emplace_back(static_cast<std::int64_t>(duration * (1 + 1e-3 * normal_(generator_))));
    }
    if (monitor) {
      time.device_state = summarize_readings({GpuReading{}, monitor(arm, turn)});
      time.device_state->round_repeats = turn.repeat;
    }
    record.time = time;
    return record;
  }

  std::vector<std::size_t> order;
  std::vector<Turn> turns;
  std::function<GpuReading(const Arm& arm, const Turn& turn)>
      monitor;  // empty if the machine has no GPU
  int taken_from_disk = 0;
  std::optional<std::pair<std::size_t, int>> failing;

 private:
  std::vector<double> speeds_;
  double process_noise_;
  std::mt19937_64 generator_{11};
  std::normal_distribution<double> normal_;
};

// Returns one arm for each point, and another arm of point 0 as the control.
std::vector<Arm> arms_of(std::size_t num_points) {
  std::vector<Arm> arms;
  for (std::size_t point = 0; point < num_points; ++point) arms.push_back({point, false, {}});
  arms.push_back({0, true, {}});
  return arms;
}

int run_turns(
    std::vector<Arm>& arms, Machine& machine, const RoundRule& rule,
    const FindOnDisk& find_on_disk = [](int) { return std::nullopt; }) {
  return take_turns(arms, /*reference=*/0, rule, find_on_disk,
                    [&](const Arm& arm, const Turn& turn) { return machine.measure(arm, turn); });
}

TEST_CASE("arms alternate so that no arm always runs first") {
  CHECK(order_of_round(0, 3) == std::vector<std::size_t>{0, 1, 2});
  CHECK(order_of_round(1, 3) == std::vector<std::size_t>{2, 1, 0});
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0);
  CHECK(run_turns(arms, machine, {.least = 2, .most = 2, .precision = 0.02}) == 2);
  CHECK(machine.order == std::vector<std::size_t>{0, 1, 0, 0, 1, 0});
}

TEST_CASE(
    "timing stops at the minimum number of rounds on a steady machine, and at the maximum on an "
    "unsteady machine") {
  std::vector<Arm> arms = arms_of(3);
  Machine steady({1, 1.2, 1.4}, 0.001);
  CHECK(run_turns(arms, steady, {.least = 4, .most = 8, .precision = 0.02}) == 4);
  for (const Arm& arm : arms) CHECK(arm.rounds.size() == 4);
  CHECK(widest_half_interval(arms, 0).value() <= 0.02);

  arms = arms_of(3);
  Machine unsteady({1, 1.2, 1.4}, 0.2);
  CHECK(run_turns(arms, unsteady, {.least = 4, .most = 8, .precision = 0.02}) == 8);
  CHECK(widest_half_interval(arms, 0).value() > 0.02);
}

TEST_CASE("a single arm stops when its own step time is precise enough") {
  std::vector<Arm> arms = {{0, false, {}}};
  Machine machine({1}, 0.001);
  CHECK(run_turns(arms, machine, {.least = 3, .most = 9, .precision = 0.02}) == 3);
}

TEST_CASE(
    "an arm that fails in one round is missing from that round and does not delay other arms") {
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0.001);
  machine.failing = {1, 0};
  CHECK(run_turns(arms, machine, {.least = 3, .most = 9, .precision = 0.02}) == 3);
  CHECK(arms[0].rounds.size() == 3);
  CHECK(arms[1].rounds.size() == 2);
}

TEST_CASE("a round is loaded from disk only if it is complete") {
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0);
  run_turns(arms, machine, {.least = 3, .most = 3, .precision = 0.02},
            [](int round) { return round == 1 ? std::optional<int>(0) : std::nullopt; });
  CHECK(machine.taken_from_disk == 3);
}

// Bits of the mask with NVML's reasons for throttling.
constexpr std::uint64_t kHwThermalSlowdown = 0x40;
constexpr std::uint64_t kSwPowerCap = 0x4;

GpuReading throttled(std::uint64_t mask) {
  GpuReading reading;
  reading.throttle_mask = mask;
  return reading;
}

// Three rounds of two points and the control take nine turns, and more turns if attempts are
// abandoned.
constexpr RoundRule kThreeRounds{.least = 3, .most = 3, .precision = 0.02, .most_repeats = 2};

TEST_CASE("a round with a throttled GPU is measured again as a whole, and marked") {
  std::vector<Arm> arms = arms_of(2);
  Machine machine({1, 2}, 0.001);
  machine.monitor = [](const Arm& arm, const Turn& turn) {
    return throttled(turn.round == 1 && turn.repeat == 0 && arm.point == 1 ? kHwThermalSlowdown
                                                                           : kSwPowerCap);
  };
  CHECK(run_turns(arms, machine, kThreeRounds) == 3);
  // Round 1 has reversed order. It begins with the control and point 1, which throttles, so the
  // attempt is abandoned. Then all arms of the round run again.
  CHECK(machine.order == std::vector<std::size_t>{0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0});
  for (const Arm& arm : arms) {
    REQUIRE(arm.rounds.size() == 3);
    CHECK(arm.rounds[1].device_state->round_repeats == 1);
    const TimeRecord time = summarize_rounds(arm.rounds);
    CHECK(time.device_state->round_repeats == 1);
    CHECK(time.quality->verdict == "good");
    CHECK_THAT(time.quality->reasons.at(0), Catch::StartsWith("1 round was measured again"));
  }
}

TEST_CASE("if a GPU stays throttled or shared, the number of repeated measurements is limited") {
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    std::vector<Arm> arms = {{0, false, {}}};
    Machine machine({1}, 0.001);
    machine.monitor = [shared](const Arm&, const Turn&) {
      GpuReading reading = throttled(shared ? kSwPowerCap : kHwThermalSlowdown);
      reading.other_processes = shared ? 1 : 0;
      return reading;
    };
    CHECK(run_turns(arms, machine, kThreeRounds) == 3);
    CHECK(machine.turns.size() == 9);
    CHECK(machine.turns.back().repeat == 2);
    const TimeRecord time = summarize_rounds(arms[0].rounds);
    CHECK(time.device_state->round_repeats == 6);
    CHECK(time.quality->verdict == (shared ? "shared_device" : "throttled"));
    CHECK_THAT(time.quality->reasons.back(), Catch::StartsWith("6 rounds were measured again"));
  }
}

TEST_CASE("a round is not repeated for a power limit, a failed arm or a missing monitor") {
  for (const int device : {0, 1, 2}) {
    CAPTURE(device);
    std::vector<Arm> arms = {{0, false, {}}};
    Machine machine({1}, 0.001);
    if (device > 0) {
      machine.monitor = [](const Arm&, const Turn&) { return throttled(kSwPowerCap); };
    }
    const auto measure = [&](const Arm& arm, const Turn& turn) {
      PointRecord record = machine.measure(arm, turn);
      if (device == 2) record.time->device_state->allocator_retries = 7;
      return record;
    };
    take_turns(
        arms, 0, kThreeRounds, [](int) { return std::nullopt; }, measure);
    CHECK(machine.turns.size() == 3);
  }
}

// The last attempt on disk has number `stored`. It is loaded, but every attempt is disturbed, so
// more attempts follow until the limit.
TEST_CASE("attempts that are stored on disk count toward the limit") {
  for (const int stored : {0, 1, 2}) {
    CAPTURE(stored);
    std::vector<Arm> arms = {{0, false, {}}};
    Machine machine({1}, 0.001);
    machine.monitor = [](const Arm&, const Turn&) { return throttled(kHwThermalSlowdown); };
    run_turns(arms, machine, {.least = 1, .most = 1, .precision = 0.02, .most_repeats = 2},
              [stored](int) { return stored; });
    CHECK(machine.taken_from_disk == 1);
    CHECK(machine.turns.front().repeat == stored);
    CHECK(machine.turns.size() == static_cast<std::size_t>(3 - stored));
    CHECK(machine.turns.back().repeat == 2);
  }
}

// A run may stop early because its interval is narrow by chance. So early stopping could cause more
// wrong verdicts than 95 % intervals allow.
TEST_CASE(
    "with early stopping and an A/A control, under 1 % of comparisons of equal arms find a "
    "difference",
    "[property]") {
  constexpr int kRuns = 400;
  int alarms = 0;
  int stopped_early = 0;
  Machine machine({1, 1}, 0.01);
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Arm> arms = arms_of(2);
    if (run_turns(arms, machine, {.least = 4, .most = 8, .precision = 0.02}) < 8) ++stopped_early;
    const TimeRecord reference = summarize_rounds(arms[0].rounds);
    const TimeRecord control = summarize_rounds(arms[2].rounds);
    const double floor = floor_of_control(paired_ratio(rounds_of(control), rounds_of(reference)));
    const TimeRecord candidate = summarize_rounds(arms[1].rounds);
    const std::string verdict = ratio_to("none", candidate, reference, floor).verdict;
    alarms += verdict == "faster" || verdict == "slower" ? 1 : 0;
  }
  CAPTURE(stopped_early);
  CHECK(stopped_early > kRuns / 4);  // ensures that the test covers early stopping
  CHECK(alarms < kRuns / 100);
}

}  // namespace
}  // namespace rematch
