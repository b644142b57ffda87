// The plans of a searched front as marks of its picture: where each is predicted and where it was
// measured.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front_json.h"
#include "reports/render/charts/plane.h"
#include "reports/render/svg.h"

namespace rematch {

enum class PlanOwner : std::uint8_t { kFront, kBaseline };

struct PlanMark {
  PlanOwner owner = PlanOwner::kFront;
  const FrontPoint* point = nullptr;
  std::string name;
  bool is_corner = false;  // an end of the front, its knee, or the answer
  Position predicted;
  std::optional<Position> measured;

  bool is_lost() const { return measured && !point->measured->lost_to.empty(); }
  Position named_at() const { return measured.value_or(predicted); }
};

// What the picture shows as predicted: calibrated on the anchors where the front was measured.
std::chrono::nanoseconds predicted_step(const Front& front, const FrontPoint& point);

// Of a point with a measured step time; without an interval both ends are the median.
std::array<std::chrono::nanoseconds, 2> measured_interval(const MeasuredFigures& measured);
StepInterval step_interval(const MeasuredFigures& measured);

// Baselines, then the points that `shown` has the indices of. They point into the record.
std::vector<PlanMark> list_marks(const FrontRecord& record, const std::vector<std::size_t>& shown);

PlaneRange peaks_of(const std::vector<PlanMark>& marks);
PlaneRange steps_of(const Front& front, const std::vector<PlanMark>& marks);

void place_marks(const Front& front, const Plane& plane, std::vector<PlanMark>& marks);

}  // namespace rematch
