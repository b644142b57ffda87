#include "harness/run/timing/turns.h"

#include <algorithm>

namespace rematch {
namespace {

Rounds samples_of(const Arm& arm) { return rounds_of(summarize_rounds(arm.rounds)); }

using Attempt = std::vector<std::optional<TimedRound>>;  // indexed by arm

// Returns nothing if the device was disturbed. The round must then be measured again, and the
// attempt's remaining arms are skipped.
std::optional<Attempt> measure_round(const std::vector<Arm>& arms, const Turn& turn,
                                     bool may_repeat, const MeasureArm& measure) {
  Attempt attempt(arms.size());
  for (const std::size_t index : order_of_round(turn.round, arms.size())) {
    PointRecord record = measure(arms[index], turn);
    if (record.time && may_repeat && is_disturbed(*record.time)) return std::nullopt;
    if (record.status == PointStatus::kOk) attempt[index] = std::move(record.time);
  }
  return attempt;
}

void add_round(std::vector<Arm>& arms, int round, const RoundRule& rule,
               const FindOnDisk& find_on_disk, const MeasureArm& measure) {
  const std::optional<int> stored = find_on_disk(round);
  Turn turn{round, stored.value_or(0), stored.has_value()};
  std::optional<Attempt> attempt;
  while (!(attempt = measure_round(arms, turn, turn.repeat < rule.most_repeats, measure))) {
    turn = {round, turn.repeat + 1, false};
  }
  for (std::size_t index = 0; index < arms.size(); ++index) {
    auto& time = (*attempt)[index];
    if (time) arms[index].rounds.push_back(*std::move(time));
  }
}

}  // namespace

int take_turns(std::vector<Arm>& arms, std::size_t reference, const RoundRule& rule,
               const FindOnDisk& find_on_disk, const MeasureArm& measure) {
  int round = 0;
  while (round < rule.most) {
    add_round(arms, round, rule, find_on_disk, measure);
    ++round;
    if (round < rule.least) continue;
    const std::optional<double> widest = widest_half_interval(arms, reference);
    if (widest && *widest <= rule.precision) break;
  }
  return round;
}

std::vector<std::size_t> order_of_round(int round, std::size_t num_arms) {
  std::vector<std::size_t> order(num_arms);
  for (std::size_t index = 0; index < num_arms; ++index) {
    order[index] = round % 2 == 0 ? index : num_arms - 1 - index;
  }
  return order;
}

double half_interval(const Estimate& estimate) {
  return (estimate.interval->high - estimate.interval->low) / 2 / estimate.value;
}

std::optional<double> widest_half_interval(const std::vector<Arm>& arms, std::size_t reference) {
  const std::size_t num_rounds = arms.at(reference).rounds.size();
  if (num_rounds < 2) return std::nullopt;
  const Rounds reference_samples = samples_of(arms[reference]);
  if (arms.size() == 1) return half_interval(median_over_rounds(reference_samples));
  double widest = 0;
  for (std::size_t index = 0; index < arms.size(); ++index) {
    if (index == reference || arms[index].rounds.size() != num_rounds) continue;
    const Estimate ratio = paired_ratio(samples_of(arms[index]), reference_samples);
    widest = std::max(widest, half_interval(ratio));
  }
  return widest;
}

}  // namespace rematch
