#include "harness/run/turns.h"

#include <algorithm>

namespace rematch {
namespace {

Blocks samples_of(const Arm& arm) { return blocks_of(summarize_blocks(arm.blocks)); }

using Attempt = std::vector<std::optional<TimedBlock>>;  // by arm

// Nothing if the device was disturbed and the block is to be measured again; the arms left are then
// not measured for nothing.
std::optional<Attempt> measure_block(const std::vector<Arm>& arms, const Turn& turn,
                                     bool may_repeat, const MeasureArm& measure) {
  Attempt attempt(arms.size());
  for (const std::size_t index : order_of_block(turn.block, arms.size())) {
    PointRecord record = measure(arms[index], turn);
    if (record.time && may_repeat && is_disturbed(*record.time)) return std::nullopt;
    if (record.status == PointStatus::kOk) attempt[index] = std::move(record.time);
  }
  return attempt;
}

void add_block(std::vector<Arm>& arms, int block, const BlockRule& rule,
               const FindOnDisk& find_on_disk, const MeasureArm& measure) {
  const std::optional<int> stored = find_on_disk(block);
  Turn turn{block, stored.value_or(0), stored.has_value()};
  std::optional<Attempt> attempt;
  while (!(attempt = measure_block(arms, turn, turn.repeat < rule.most_repeats, measure))) {
    turn = {block, turn.repeat + 1, false};
  }
  for (std::size_t index = 0; index < arms.size(); ++index) {
    auto& time = (*attempt)[index];
    if (time) arms[index].blocks.push_back(*std::move(time));
  }
}

}  // namespace

int take_turns(std::vector<Arm>& arms, std::size_t reference, const BlockRule& rule,
               const FindOnDisk& find_on_disk, const MeasureArm& measure) {
  int block = 0;
  while (block < rule.most) {
    add_block(arms, block, rule, find_on_disk, measure);
    ++block;
    if (block < rule.least) continue;
    const std::optional<double> widest = widest_half_interval(arms, reference);
    if (widest && *widest <= rule.precision) break;
  }
  return block;
}

std::vector<std::size_t> order_of_block(int block, std::size_t num_arms) {
  std::vector<std::size_t> order(num_arms);
  for (std::size_t index = 0; index < num_arms; ++index) {
    order[index] = block % 2 == 0 ? index : num_arms - 1 - index;
  }
  return order;
}

double half_interval(const Estimate& estimate) {
  return (estimate.interval->high - estimate.interval->low) / 2 / estimate.value;
}

std::optional<double> widest_half_interval(const std::vector<Arm>& arms, std::size_t reference) {
  const std::size_t num_blocks = arms.at(reference).blocks.size();
  if (num_blocks < 2) return std::nullopt;
  const Blocks reference_samples = samples_of(arms[reference]);
  if (arms.size() == 1) return half_interval(median_over_blocks(reference_samples));
  double widest = 0;
  for (std::size_t index = 0; index < arms.size(); ++index) {
    if (index == reference || arms[index].blocks.size() != num_blocks) continue;
    const Estimate ratio = paired_ratio(samples_of(arms[index]), reference_samples);
    widest = std::max(widest, half_interval(ratio));
  }
  return widest;
}

}  // namespace rematch
