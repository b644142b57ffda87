#include "policies/search/front/measurement_json.h"
#include "policies/base/json.h"
#include "policies/base/schema.h"

#include <optional>
#include <utility>

namespace rematch {
namespace {

using std::chrono::nanoseconds;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::optional<nanoseconds>& time) {
  return time ? Json(time->count()) : Json(nullptr);
}

std::optional<double> number_or_nothing(const JsonField& field) {
  return field.is_null() ? std::nullopt : std::optional(field.number());
}

void require_pair(const JsonField& field) {
  if (field.size() != 2) field.fail("must have two ends, has " + std::to_string(field.size()));
}

Json family_to_json(const MeasuredFamily& family) {
  return {{"family", family.family},
          {"predicted_hypervolume_ratio", family.predicted},
          {"measured_hypervolume_ratio", or_null(family.measured)},
          {"measured_hypervolume_beyond_noise_ratio", or_null(family.measured_beyond_noise)}};
}

MeasuredFamily family_from_json(const JsonField& field) {
  return {field.at("family").string(), field.at("predicted_hypervolume_ratio").number(),
          number_or_nothing(field.at("measured_hypervolume_ratio")),
          number_or_nothing(field.at("measured_hypervolume_beyond_noise_ratio"))};
}

Json error_of(const MeasuredFigures& figures) {
  if (!figures.calibrated_step_time || !figures.step_time || figures.step_time->count() == 0) {
    return nullptr;
  }
  const auto measured = static_cast<double>(figures.step_time->count());
  return static_cast<double>(figures.calibrated_step_time->count()) / measured - 1;
}

}  // namespace

Json measured_to_json(const FrontPoint& point) {
  if (!point.measured) return nullptr;
  const MeasuredFigures& figures = *point.measured;
  Json json = {{"status", figures.status},
               {"reason", figures.reason},
               {"peak_allocated_bytes", nullptr},
               {"peak_equals_prediction", nullptr},
               {"step_time_ns", or_null(figures.step_time)},
               {"step_time_interval_ns", nullptr},
               {"calibrated_predicted_step_time_ns", or_null(figures.calibrated_step_time)},
               {"step_time_error_ratio", error_of(figures)},
               {"is_anchor", figures.is_anchor},
               {"lost_to", nullptr}};
  if (figures.peak) {
    json["peak_allocated_bytes"] = figures.peak->count;
    json["peak_equals_prediction"] = *figures.peak == point.figures.peak;
  }
  if (figures.step_interval) {
    json["step_time_interval_ns"] = {(*figures.step_interval)[0].count(),
                                     (*figures.step_interval)[1].count()};
  }
  if (!figures.lost_to.empty()) json["lost_to"] = figures.lost_to;
  return json;
}

MeasuredFigures measured_from_json(const JsonField& field) {
  MeasuredFigures figures;
  figures.status = field.at("status").string();
  figures.reason = field.at("reason").string();
  const JsonField peak = field.at("peak_allocated_bytes");
  if (!peak.is_null()) figures.peak = Bytes{peak.count()};
  const JsonField time = field.at("step_time_ns");
  if (!time.is_null()) figures.step_time = nanoseconds(time.count());
  const JsonField interval = field.at("step_time_interval_ns");
  if (!interval.is_null()) {
    require_pair(interval);
    figures.step_interval = {nanoseconds(interval.at(std::size_t{0}).count()),
                             nanoseconds(interval.at(std::size_t{1}).count())};
  }
  const JsonField calibrated = field.at("calibrated_predicted_step_time_ns");
  if (!calibrated.is_null()) figures.calibrated_step_time = nanoseconds(calibrated.count());
  figures.is_anchor = field.at("is_anchor").boolean();
  const JsonField lost_to = field.at("lost_to");
  if (!lost_to.is_null()) figures.lost_to = lost_to.string();
  return figures;
}

Json measurement_to_json(const FrontMeasurement& measurement) {
  Json families = Json::array();
  for (const MeasuredFamily& family : measurement.families) {
    families.push_back(family_to_json(family));
  }
  return {{"chosen_by", measurement.chosen_by},
          {"anchors", measurement.anchors},
          {"calibration",
           "measured step time = offset + slope * predicted, least squares over the "
           "anchors"},
          {"calibration_offset_ns", measurement.offset_ns},
          {"calibration_slope", measurement.slope},
          {"control_interval", or_null(measurement.control_interval)},
          {"num_measured", measurement.num_measured},
          {"num_equal_peaks", measurement.num_equal_peaks},
          {"median_step_time_error_ratio", or_null(measurement.median_error_ratio)},
          {"worst_step_time_error_ratio", or_null(measurement.worst_error_ratio)},
          {"predicted_hypervolume_ratio", measurement.predicted_hypervolume},
          {"measured_hypervolume_ratio", or_null(measurement.measured_hypervolume)},
          {"baseline_families", std::move(families)}};
}

FrontMeasurement measurement_from_json(const JsonField& field, std::int64_t num_points) {
  FrontMeasurement measurement;
  measurement.chosen_by = field.at("chosen_by").string();
  for (const JsonField& anchor : field.at("anchors").elements()) {
    measurement.anchors.push_back(static_cast<std::size_t>(anchor.integer(0, num_points - 1)));
  }
  measurement.offset_ns = field.at("calibration_offset_ns").number();
  measurement.slope = field.at("calibration_slope").number();
  const JsonField control = field.at("control_interval");
  if (!control.is_null()) {
    require_pair(control);
    measurement.control_interval = {control.at(std::size_t{0}).number(),
                                    control.at(std::size_t{1}).number()};
  }
  measurement.num_measured = field.at("num_measured").integer32(0);
  measurement.num_equal_peaks = field.at("num_equal_peaks").integer32(0);
  measurement.median_error_ratio = number_or_nothing(field.at("median_step_time_error_ratio"));
  measurement.worst_error_ratio = number_or_nothing(field.at("worst_step_time_error_ratio"));
  measurement.predicted_hypervolume = field.at("predicted_hypervolume_ratio").number();
  measurement.measured_hypervolume = number_or_nothing(field.at("measured_hypervolume_ratio"));
  for (const JsonField& family : field.at("baseline_families").elements()) {
    measurement.families.push_back(family_from_json(family));
  }
  return measurement;
}

}  // namespace rematch
