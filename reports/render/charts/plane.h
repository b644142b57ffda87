// The plane of fronts: peak bytes across, step time upwards, the line of a memory limit, and names
// beside their places. Knows no points.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "policies/trace/bytes.h"
#include "reports/render/charts/legend.h"
#include "reports/render/scale.h"
#include "reports/render/svg.h"

namespace rematch {

// What an axis must have room for, in bytes or nanoseconds.
struct PlaneRange {
  double low = INFINITY;
  double high = -INFINITY;

  void include(double value);
  // A margin of empty space, so that markers do not sit on the frame.
  void widen(double part);
};

// A step time with the ends of its interval, in nanoseconds.
struct StepInterval {
  double low = 0;
  double step = 0;
  double high = 0;
};

// Room for the intervals as well. Those that reach far beyond all steps would squeeze the points
// together; they are cut off at the frame.
void include_intervals(PlaneRange& steps, const std::vector<StepInterval>& intervals);

struct Plane {
  Box area;
  Axis x_axis;
  Axis y_axis;
  Scale x;  // of bytes
  Scale y;  // of nanoseconds
};

// A limit far from `peaks` would squeeze the points together, so it is left out.
Plane make_plane(PlaneRange peaks, PlaneRange steps, std::optional<Bytes> limit, double width);

void draw_plane(Picture& picture, const Plane& plane);

struct MemoryLimit {
  std::string name;  // "device limit"
  Bytes bytes;
};

// A line, or words where it is far from `peaks`. Returns the boxes that names must not cover.
std::vector<Box> draw_limit(Picture& picture, const std::optional<MemoryLimit>& limit,
                            const PlaneRange& peaks, const Plane& plane);

// What the line covers goes to `lines`.
void draw_line(Picture& picture, const Line& line, std::vector<Box>& lines);

// The interval of a step time at `x`, with arrows where it is cut off. What it covers goes to
// `lines`.
void draw_step_interval(Picture& picture, const StepInterval& interval, double x, Paint paint,
                        const Plane& plane, std::vector<Box>& lines);

// Steps from one corner to the next, by peak: along a step time, then down at a peak. What they
// cover goes to `lines`.
void draw_steps(Picture& picture, std::vector<Position> corners, std::vector<Box>& lines);

struct PlaneName {
  Position at;
  std::string text;
  Paint paint = Paint::kInk;
  Weight weight = Weight::kNormal;
};

// Beside the markers of that radius, first come first served; a name without room is left out.
// `obstacles` are what else no name may cover.
void draw_names(Picture& picture, std::vector<PlaneName> names, double radius,
                std::vector<Box> obstacles, const Plane& plane);

// A box that leaves a marker of that radius free.
Box around_marker(Position at, double radius);

// Below the plane; the picture ends there.
void end_with_legend(Picture& picture, const Plane& plane, const std::vector<LegendEntry>& entries);

}  // namespace rematch
