#include "reports/record/by_phase.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

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

Json quality_to_json(const TimeQuality& quality) {
  return {{"verdict", quality.verdict},
          {"noise_ratio", to_value(quality.noise_ratio)},
          {"drift_ratio", to_value(quality.drift_ratio)},
          {"reasons", quality.reasons}};
}

TimeQuality quality_from_json(const JsonField& field) {
  TimeQuality quality;
  read_member(field, "verdict", quality.verdict);
  read_member(field, "noise_ratio", quality.noise_ratio);
  read_member(field, "drift_ratio", quality.drift_ratio);
  read_member(field, "reasons", quality.reasons);
  return quality;
}

}  // namespace

Json time_to_json(const TimeRecord& time) {
  return {{"step_median_ns", to_value(time.step_median)},
          {"step_interval_ns", to_value(time.step_interval)},
          {"step_mad_ns", to_value(time.step_mad)},
          {"samples_ns", to_value(time.samples)},
          {"phases_ns", to_value(time.phases)},
          {"classes_ns", phases_to_json(time.classes)},
          {"step_ratio", time.ratio ? ratio_to_json(*time.ratio) : Json(nullptr)},
          {"quality", time.quality ? quality_to_json(*time.quality) : Json(nullptr)}};
}

TimeRecord time_from_json(const JsonField& field) {
  TimeRecord time;
  read_member(field, "step_median_ns", time.step_median);
  read_member(field, "step_interval_ns", time.step_interval);
  read_member(field, "step_mad_ns", time.step_mad);
  read_member(field, "samples_ns", time.samples);
  read_member(field, "phases_ns", time.phases);
  read_phases(field.at("classes_ns"), time.classes);
  if (const auto ratio = non_null_member(field, "step_ratio")) time.ratio = ratio_from_json(*ratio);
  if (const auto quality = non_null_member(field, "quality")) {
    time.quality = quality_from_json(*quality);
  }
  return time;
}

}  // namespace rematch
