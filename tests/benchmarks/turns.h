// Times several functions ("arms") in alternating order: A B C, then C B A, and so on. A temporary
// slowdown of the machine then affects all arms. Ratios and differences are computed within one
// sweep over the arms.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "reports/statistics/statistics.h"

namespace rematch::benchmarks {

class Turns {
 public:
  // In each sweep, an arm runs `repetitions` times in a row. These runs are timed together.
  explicit Turns(int repetitions = 1) : repetitions_(repetitions) {}

  // Returns the arm's index.
  std::size_t add(std::function<void()> arm);

  // Runs every arm once. The samples of the first kWarmUpSweeps sweeps are discarded.
  void sweep();

  // Returns the time of one run of the arm.
  Estimate nanoseconds(std::size_t arm) const;
  // Returns the ratio of arm to base, computed within each sweep.
  Estimate ratio(std::size_t arm, std::size_t base) const;
  struct Term {
    double factor;
    std::size_t arm;
  };
  // Returns the weighted sum of the arms' times, divided by `count`.
  Estimate nanoseconds(const std::vector<Term>& terms, double count) const;

 private:
  static constexpr int kWarmUpSweeps = 4;
  // The median of this many sweeps is one observation. A stall of the machine then spoils only one
  // observation.
  static constexpr std::size_t kSweepsInRound = 8;

  template <typename Value>
  Rounds rounds_of(const Value& value_of_sweep) const;

  int repetitions_;
  int num_sweeps_ = 0;
  std::vector<std::function<void()>> arms_;
  // nanoseconds of one run, indexed by arm, then by sweep
  std::vector<std::vector<double>> samples_;
};

}  // namespace rematch::benchmarks
