// Times arms that take turns: A B C, then C B A, and so on, so that what slows the machine down for
// a while slows all of them. Figures are ratios and differences of neighbours, never of two runs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "reports/statistics/statistics.h"

namespace rematch::benchmarks {

class Turns {
 public:
  // `repetitions`: runs of an arm at a turn, timed together.
  explicit Turns(int repetitions = 1) : repetitions_(repetitions) {}

  // The arm's index.
  std::size_t add(std::function<void()> arm);

  // Every arm once. The first kWarmUpSweeps are not kept.
  void sweep();

  // The time of one run of the arm.
  Estimate nanoseconds(std::size_t arm) const;
  // The ratio of arm to base, each sweep's with its own.
  Estimate ratio(std::size_t arm, std::size_t base) const;
  // The sum of the arms' times, each by its factor, over `count`.
  struct Term {
    double factor;
    std::size_t arm;
  };
  Estimate nanoseconds(const std::vector<Term>& terms, double count) const;

 private:
  static constexpr int kWarmUpSweeps = 4;
  // Sweeps whose median is one observation: a stall of the machine spoils one, not all.
  static constexpr std::size_t kSweepsInRound = 8;

  template <typename Value>
  Rounds rounds_of(const Value& value_of_sweep) const;

  int repetitions_;
  int num_sweeps_ = 0;
  std::vector<std::function<void()>> arms_;
  std::vector<std::vector<double>> samples_;  // [arm][sweep], nanoseconds of one run
};

}  // namespace rematch::benchmarks
