#include <cmath>

#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

// The verdict in reports of 1.0 that say "block" for a round.
constexpr const char* kOldFewRounds = "few_blocks";

// No step takes no time: such a sample would be left out of some statistics and halve others.
void require_times(const JsonField& field,
                   const std::vector<std::vector<std::chrono::nanoseconds>>& all) {
  for (std::size_t round = 0; round < all.size(); ++round) {
    for (std::size_t step = 0; step < all[round].size(); ++step) {
      if (all[round][step].count() <= 0) field.at(round).at(step).fail("is no time of a step");
    }
  }
}

// Tables show the median, and what decides is made from the samples.
void require_median_of_samples(const JsonField& field, const TimeRecord& time) {
  if (!time.step_median) return;
  std::vector<double> medians;
  for (const auto& samples : time.samples) {
    if (samples.empty()) return;
    std::vector<double> round;
    for (const auto sample : samples) round.push_back(static_cast<double>(sample.count()));
    medians.push_back(median(std::move(round)));
  }
  if (medians.empty()) return;
  const double step = median(std::move(medians));
  if (std::abs(step - static_cast<double>(time.step_median->count())) <= 1) return;
  field.at("step_median_ns").fail("is not the median of \"samples_ns\"; was the file edited?");
}

void require_start_of_each_round(const JsonField& field, const TimeRecord& time) {
  if (time.starts.empty() || time.starts.size() == time.samples.size()) return;
  field.at("starts").fail("has " + std::to_string(time.starts.size()) +
                          " entries; samples_ns has " + std::to_string(time.samples.size()) +
                          " rounds");
}

}  // namespace

void read_value(const JsonField& field, TimeQuality& quality) {
  read_fields(field, quality);
  if (quality.verdict == kOldFewRounds) quality.verdict = "few_rounds";
}

void read_value(const JsonField& field, TimeRecord& time) {
  read_fields(field, time);
  require_times(field.at("samples_ns"), time.samples);
  require_median_of_samples(field, time);
  require_start_of_each_round(field, time);
}

}  // namespace rematch
