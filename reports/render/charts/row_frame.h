// The frame of charts with one row a policy: name, lane for what is drawn, value in words. Wide
// pictures have the name beside the lane, narrow ones above it.
#pragma once

#include <string>
#include <vector>

#include "reports/render/scale.h"
#include "reports/render/svg.h"

namespace rematch {

struct RowText {
  std::string name;
  std::string note;   // beside the name, in grey
  std::string value;  // at the right end
  std::string hint;
  Weight weight = Weight::kNormal;
};

struct RowFrame {
  Picture picture;         // names, values, axis; lanes are empty
  std::vector<Box> lanes;  // of each row; left and right are those of the axis
  Scale scale;             // along the lanes
  double lane_reach = 0;   // how far beyond a lane a line may go without touching text
};

// `axis_title` says what is counted and in which unit. Narrow lanes keep `inset` from the edges:
// room for markers at their ends.
RowFrame draw_row_frame(const std::vector<RowText>& rows, const Axis& axis,
                        const std::string& axis_title, double width, double inset);

// A line at `x` through every lane; names between lanes stay free of it.
void draw_through_lanes(RowFrame& frame, double x, Paint paint);

}  // namespace rematch
