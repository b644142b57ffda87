#include "tests/benchmarks/turns.h"

#include <chrono>
#include <utility>

namespace rematch::benchmarks {

std::size_t Turns::add(std::function<void()> arm) {
  arms_.push_back(std::move(arm));
  samples_.emplace_back();
  return arms_.size() - 1;
}

void Turns::sweep() {
  using Clock = std::chrono::steady_clock;
  const bool forwards = num_sweeps_ % 2 == 0;
  const bool keep = num_sweeps_ >= kWarmUpSweeps;
  for (std::size_t turn = 0; turn < arms_.size(); ++turn) {
    const std::size_t arm = forwards ? turn : arms_.size() - 1 - turn;
    const Clock::time_point start = Clock::now();
    for (int repetition = 0; repetition < repetitions_; ++repetition) arms_[arm]();
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
    if (keep) samples_[arm].push_back(elapsed.count() / repetitions_);
  }
  ++num_sweeps_;
}

template <typename Value>
Rounds Turns::rounds_of(const Value& value_of_sweep) const {
  Rounds rounds;
  for (std::size_t sweep = 0; sweep < samples_.front().size(); ++sweep) {
    if (sweep % kSweepsInRound == 0) rounds.emplace_back();
    rounds.back().push_back(value_of_sweep(sweep));
  }
  if (rounds.size() > 1 && rounds.back().size() < kSweepsInRound) rounds.pop_back();
  return rounds;
}

Estimate Turns::nanoseconds(std::size_t arm) const {
  return median_over_rounds(rounds_of([&](std::size_t sweep) { return samples_[arm][sweep]; }));
}

Estimate Turns::ratio(std::size_t arm, std::size_t base) const {
  return median_over_rounds(
      rounds_of([&](std::size_t sweep) { return samples_[arm][sweep] / samples_[base][sweep]; }));
}

Estimate Turns::nanoseconds(const std::vector<Term>& terms, double count) const {
  return median_difference_over_rounds(rounds_of([&](std::size_t sweep) {
    double sum = 0;
    for (const Term& term : terms) sum += term.factor * samples_[term.arm][sweep];
    return sum / count;
  }));
}

}  // namespace rematch::benchmarks
