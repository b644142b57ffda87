// A report's points sorted into comparisons: points that differ in policy and schedule alone stand
// against each other, and each knows the reference it is held against.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/report.h"
#include "reports/render/verdict.h"

namespace rematch {

// Pointers are into the report, which must outlive this.
struct ComparedPoint {
  const PointRecord* point = nullptr;
  const PointRecord* none = nullptr;  // same schedule if there is one, else any; null: not in it
  const PointRecord* full = nullptr;  // same schedule only
  std::vector<const RepeatRecord*> repeats;  // runs of this point that finished
  Verdict verdict;
};

struct Comparison {
  std::string title;  // "wan_small on cpu: batch 1, dim 256, ...; float32, adamw, seed 1"
  std::vector<ComparedPoint> points;  // in the report's order
};

// "full on_demand"
std::string name_of(const PointRecord& point);

std::vector<Comparison> compare_policies(const Report& report);

// Figures of a finished point.
std::optional<Bytes> measured_peak(const PointRecord& record);
std::optional<std::chrono::nanoseconds> measured_step(const PointRecord& record);

}  // namespace rematch
