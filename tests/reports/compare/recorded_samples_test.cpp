// Counts false alarms on measured times. All recorded rounds are of the same program. They are
// assigned at random to the two reports of a comparison, so every difference found is a false
// alarm.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <random>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/compare/compare.h"
#include "reports/statistics/statistics.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

// Consecutive rounds of the same program. Chance decides which arm gets which round.
using Slot = std::array<std::vector<double>, 4>;

struct Recording {
  std::string name;
  std::vector<Slot> slots;
};

// Turns were recorded in the order "none", "again", "again", "none". Every four turns form a slot.
Recording recording_of(const Json& json) {
  Recording recording;
  recording.name = json.at("model").get<std::string>();
  const auto none = json.at("none_ns").get<Rounds>();
  const auto again = json.at("again_ns").get<Rounds>();
  for (std::size_t round = 0; round + 1 < std::min(none.size(), again.size()); round += 2) {
    recording.slots.push_back({none[round], again[round], again[round + 1], none[round + 1]});
  }
  return recording;
}

std::vector<Recording> recordings() {
  const Json json =
      read_json_file(testing::in_tree("tests/reports/fixtures/recorded_samples.json"));
  std::vector<Recording> found;
  for (const Json& recording : json.at("recordings")) found.push_back(recording_of(recording));
  return found;
}

struct Arms {
  Rounds reference;
  Rounds control;
  Rounds candidate;
};

// Draws `num_rounds` slots at random. Assigns the rounds of each slot to the arms at random.
Arms deal(const Recording& recording, std::size_t num_rounds, std::mt19937& bits) {
  std::vector<std::size_t> order(recording.slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), bits);
  Arms arms;
  for (std::size_t round = 0; round < num_rounds; ++round) {
    Slot slot = recording.slots.at(order[round]);
    std::shuffle(slot.begin(), slot.end(), bits);
    arms.reference.push_back(std::move(slot[0]));
    arms.control.push_back(std::move(slot[1]));
    arms.candidate.push_back(std::move(slot[2]));
  }
  return arms;
}

void slow_down(Rounds& rounds, double factor) {
  for (std::vector<double>& round : rounds) {
    for (double& sample : round) sample *= factor;
  }
}

bool is_alarm(RatioVerdict verdict) {
  return verdict == RatioVerdict::kFaster || verdict == RatioVerdict::kSlower;
}

// Returns how often `rematch run` calls the candidate slower or faster. With slowdown 1, these are
// false alarms.
double alarms_of_run(const Recording& recording, std::size_t num_rounds, double slowdown) {
  constexpr int kTrials = 4000;
  std::mt19937 bits(7);
  int alarms = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Arms arms = deal(recording, num_rounds, bits);
    slow_down(arms.candidate, slowdown);
    const double floor = floor_of_control(paired_ratio(arms.control, arms.reference));
    alarms += is_alarm(judge_ratio(paired_ratio(arms.candidate, arms.reference), floor)) ? 1 : 0;
  }
  return static_cast<double>(alarms) / kTrials;
}

PointRecord point_of(const std::string& policy, const Rounds& rounds) {
  PointRecord point = testing::sample_point(policy);
  point.time->samples.clear();
  for (const std::vector<double>& round : rounds) {
    auto& samples = point.time->samples.emplace_back();
    for (const double sample : round) {
      samples.emplace_back(static_cast<std::int64_t>(sample));
    }
  }
  return point;
}

// Returns the share of comparisons by `rematch compare` that find a difference.
double alarms_of_compare(const Recording& recording, std::size_t num_rounds, int num_rows,
                         double slowdown) {
  constexpr int kReports = 400;
  std::mt19937 bits(11);
  CompareSettings settings;
  settings.metrics = {Metric::kStepTime};
  int alarms = 0;
  for (int trial = 0; trial < kReports; ++trial) {
    Report base{testing::sample_provenance(), {}, {}};
    Report candidate = base;
    for (int row = 0; row < num_rows; ++row) {
      Arms arms = deal(recording, num_rounds, bits);
      slow_down(arms.candidate, slowdown);
      base.points.push_back(point_of(std::to_string(row), arms.reference));
      candidate.points.push_back(point_of(std::to_string(row), arms.candidate));
    }
    const CompareRecord record =
        compare_reports(base, "base.json", candidate, "candidate.json", settings);
    const auto& verdicts = record.summary.at(Metric::kStepTime);
    const bool alarm =
        verdicts.contains(CompareVerdict::kFaster) || verdicts.contains(CompareVerdict::kSlower);
    alarms += alarm ? 1 : 0;
  }
  return static_cast<double>(alarms) / kReports;
}

}  // namespace

TEST_CASE("on recorded samples, rematch run calls at most 1 % of equal arms different",
          "[property]") {
  for (const Recording& recording : recordings()) {
    REQUIRE(recording.slots.size() >= 16);
    for (const std::size_t num_rounds : {4, 8}) {
      CAPTURE(recording.name, num_rounds);
      CHECK(alarms_of_run(recording, num_rounds, 1) <= 0.01);
    }
    CHECK(alarms_of_run(recording, 8, 3) > 0.5);  // a real slowdown is detected
  }
}

TEST_CASE(
    "on recorded samples, rematch compare finds a difference in at most 1 % of reports of equal "
    "runs",
    "[property]") {
  for (const Recording& recording : recordings()) {
    for (const int num_rows : {1, 14}) {
      CAPTURE(recording.name, num_rows);
      CHECK(alarms_of_compare(recording, 4, num_rows, 1) <= 0.01);
    }
    CHECK(alarms_of_compare(recording, 4, 14, 3) > 0.5);
  }
}

TEST_CASE(
    "prints how often recorded samples give false alarms, and how often slowdowns are detected",
    "[.rates]") {
  for (const Recording& recording : recordings()) {
    for (const double slowdown : {1.0, 1.1, 1.5, 3.0}) {
      std::printf("%s x%.1f: run 4 rounds %.4f, 8 rounds %.4f; compare 1 row %.4f, 14 rows %.4f\n",
                  recording.name.c_str(), slowdown, alarms_of_run(recording, 4, slowdown),
                  alarms_of_run(recording, 8, slowdown),
                  alarms_of_compare(recording, 4, 1, slowdown),
                  alarms_of_compare(recording, 4, 14, slowdown));
    }
  }
}

}  // namespace rematch
