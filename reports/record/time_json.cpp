#include <cmath>

#include "policies/trace/json.h"
#include "reports/record/by_phase.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

// No step takes no time: such a sample would be left out of some statistics and halve others.
void read_samples(const JsonField& field, std::vector<std::vector<std::chrono::nanoseconds>>& all) {
  read_value(field, all);
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

Json ratio_to_json(const StepRatioRecord& ratio) {
  return {{"reference", ratio.reference},
          {"ratio", to_value(ratio.ratio)},
          {"interval", to_value(ratio.interval)},
          {"verdict", ratio.verdict}};
}

StepRatioRecord ratio_from_json(const JsonField& field) {
  StepRatioRecord ratio;
  read_member(field, "reference", ratio.reference);
  read_member(field, "ratio", ratio.ratio);
  read_member(field, "interval", ratio.interval);
  read_member(field, "verdict", ratio.verdict);
  return ratio;
}

Json control_to_json(const ControlRecord& control) {
  return {{"ratio", to_value(control.ratio)}, {"interval", to_value(control.interval)}};
}

ControlRecord control_from_json(const JsonField& field) {
  ControlRecord control;
  read_member(field, "ratio", control.ratio);
  read_member(field, "interval", control.interval);
  return control;
}

Json quality_to_json(const TimeQuality& quality) {
  return {{"verdict", quality.verdict},
          {"noise_ratio", to_value(quality.noise_ratio)},
          {"drift_ratio", to_value(quality.drift_ratio)},
          {"reasons", quality.reasons},
          {"num_outliers", to_value(quality.num_outliers)}};
}

// The names in reports of 1.0, which say "block" for a round.
constexpr const char* kOldFewRounds = "few_blocks";
constexpr const char* kOldRoundRepeats = "block_repeats";

TimeQuality quality_from_json(const JsonField& field) {
  TimeQuality quality;
  read_member(field, "verdict", quality.verdict);
  if (quality.verdict == kOldFewRounds) quality.verdict = "few_rounds";
  read_member(field, "noise_ratio", quality.noise_ratio);
  read_member(field, "drift_ratio", quality.drift_ratio);
  read_member(field, "reasons", quality.reasons);
  if (const auto outliers = field.find("num_outliers")) read_value(*outliers, quality.num_outliers);
  return quality;
}

template <class AState, class Visit>
void visit_members(AState& state, Visit visit) {
  visit("sm_clock_median_mhz", state.sm_clock_median_mhz);
  visit("sm_clock_least_mhz", state.sm_clock_least_mhz);
  visit("memory_clock_least_mhz", state.memory_clock_least_mhz);
  visit("temperature_most_celsius", state.temperature_most_celsius);
  visit("throttle_reasons", state.throttle_reasons);
  visit("other_processes", state.other_processes);
  visit("allocator_retries", state.allocator_retries);
}

Json device_state_to_json(const DeviceStateRecord& state) {
  Json json = Json::object();
  visit_members(state,
                [&json](const char* name, const auto& member) { json[name] = to_value(member); });
  json["round_repeats"] = to_value(state.round_repeats);
  return json;
}

DeviceStateRecord device_state_from_json(const JsonField& field) {
  DeviceStateRecord state;
  visit_members(state,
                [&field](const char* name, auto& member) { read_member(field, name, member); });
  if (const auto repeats = field.find(kOldRoundRepeats)) read_value(*repeats, state.round_repeats);
  if (const auto repeats = field.find("round_repeats")) read_value(*repeats, state.round_repeats);
  return state;
}

}  // namespace

Json time_to_json(const TimeRecord& time) {
  return {{"step_median_ns", to_value(time.step_median)},
          {"step_interval_ns", to_value(time.step_interval)},
          {"step_mad_ns", to_value(time.step_mad)},
          {"samples_ns", to_value(time.samples)},
          {"starts", to_value(time.starts)},
          {"phases_ns", to_value(time.phases)},
          {"classes_ns", phases_to_json(time.classes)},
          {"step_ratio", time.ratio ? ratio_to_json(*time.ratio) : Json(nullptr)},
          {"control", time.control ? control_to_json(*time.control) : Json(nullptr)},
          {"quality", time.quality ? quality_to_json(*time.quality) : Json(nullptr)},
          {"device_state",
           time.device_state ? device_state_to_json(*time.device_state) : Json(nullptr)},
          {"repeatable_bits", to_value(time.repeatable_bits)},
          {"attention_backend", text_or_null(time.attention_backend)}};
}

TimeRecord time_from_json(const JsonField& field) {
  TimeRecord time;
  read_member(field, "step_median_ns", time.step_median);
  read_member(field, "step_interval_ns", time.step_interval);
  read_member(field, "step_mad_ns", time.step_mad);
  read_samples(field.at("samples_ns"), time.samples);
  require_median_of_samples(field, time);
  if (const auto starts = field.find("starts")) {
    read_value(*starts, time.starts);
    if (!time.starts.empty() && time.starts.size() != time.samples.size()) {
      starts->fail("has " + std::to_string(time.starts.size()) + " entries; samples_ns has " +
                   std::to_string(time.samples.size()) + " rounds");
    }
  }
  read_member(field, "phases_ns", time.phases);
  read_phases(field.at("classes_ns"), time.classes);
  if (const auto ratio = non_null_member(field, "step_ratio")) time.ratio = ratio_from_json(*ratio);
  if (const auto quality = non_null_member(field, "quality")) {
    time.quality = quality_from_json(*quality);
  }
  const auto control = field.find("control");
  if (control && !control->is_null()) time.control = control_from_json(*control);
  const auto state = field.find("device_state");
  if (state && !state->is_null()) time.device_state = device_state_from_json(*state);
  if (const auto bits = field.find("repeatable_bits")) read_value(*bits, time.repeatable_bits);
  if (field.find("attention_backend")) {
    read_text(field, "attention_backend", time.attention_backend);
  }
  return time;
}

}  // namespace rematch
