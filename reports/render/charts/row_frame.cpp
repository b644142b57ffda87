#include "reports/render/charts/row_frame.h"

#include <algorithm>

#include "reports/render/charts/axes.h"
#include "reports/render/text_width.h"

namespace rematch {
namespace {

constexpr double kTextSize = 12.5;
constexpr double kNoteSize = 11.5;
constexpr double kGap = 8;
constexpr double kLaneHeight = 14;
constexpr double kTitleHeight = 24;
constexpr double kAxisHeight = 24;
// Of the picture's width, for names and notes beside the lanes.
constexpr double kMostForNames = 0.42;
constexpr double kBoldFactor = 1.13;
// What multiplying by a factor and dividing by it again may lose.
constexpr double kRounding = 0.01;

double name_width(const RowText& row) {
  return text_width(row.name, kTextSize) * (row.weight == Weight::kBold ? kBoldFactor : 1);
}

struct Columns {
  double names = 0;
  double notes = 0;
  double values = 0;
};

Columns measure(const std::vector<RowText>& rows, double width) {
  Columns columns;
  for (const RowText& row : rows) {
    columns.names = std::max(columns.names, name_width(row));
    columns.notes = std::max(columns.notes, text_width(row.note, kNoteSize));
    columns.values = std::max(columns.values, text_width(row.value, kTextSize));
  }
  const double room = width * kMostForNames - columns.notes - kGap;
  columns.names = std::min(columns.names, std::max(60.0, room));
  return columns;
}

Label name_label(const RowText& row, Position baseline, double room) {
  const double factor = row.weight == Weight::kBold ? kBoldFactor : 1;
  return {baseline,       fit_text(row.name, kTextSize, room / factor + kRounding),
          Anchor::kStart, Paint::kInk,
          kTextSize,      row.weight,
          row.hint};
}

// Name, note, lane and value in one line.
void draw_beside(RowFrame& frame, const std::vector<RowText>& rows, const Columns& columns) {
  constexpr double kRowHeight = 24;
  const double notes_from = columns.names + (columns.notes > 0 ? kGap : 0);
  const double left = notes_from + columns.notes + 12;
  const double right = frame.picture.width - columns.values - kGap;
  double top = kTitleHeight;
  for (const RowText& row : rows) {
    const double middle = top + kRowHeight / 2;
    frame.picture.add(name_label(row, {0, middle + 4}, columns.names));
    if (!row.note.empty()) {
      frame.picture.add(
          Label{{notes_from, middle + 4}, row.note, Anchor::kStart, Paint::kMuted, kNoteSize});
    }
    frame.picture.add(
        Label{{frame.picture.width, middle + 4}, row.value, Anchor::kEnd, Paint::kInk, kTextSize});
    frame.lanes.push_back({left, middle - kLaneHeight / 2, right, middle + kLaneHeight / 2});
    top += kRowHeight;
  }
}

// Name, note and value above the lane.
void draw_above(RowFrame& frame, const std::vector<RowText>& rows, double inset) {
  constexpr double kRowHeight = 42;
  double top = kTitleHeight;
  for (const RowText& row : rows) {
    const double baseline = top + 15;
    const double note_width = row.note.empty() ? 0 : text_width(row.note, kNoteSize) + kGap;
    const double value_width = text_width(row.value, kTextSize) + kGap;
    const Label name = name_label(row, {0, baseline},
                                  std::max(40.0, frame.picture.width - note_width - value_width));
    frame.picture.add(name);
    if (!row.note.empty()) {
      frame.picture.add(Label{{extent(name).right + kGap, baseline},
                              row.note,
                              Anchor::kStart,
                              Paint::kMuted,
                              kNoteSize});
    }
    frame.picture.add(
        Label{{frame.picture.width, baseline}, row.value, Anchor::kEnd, Paint::kInk, kTextSize});
    frame.lanes.push_back({inset, top + 21, frame.picture.width - inset, top + 21 + kLaneHeight});
    top += kRowHeight;
  }
}

}  // namespace

RowFrame draw_row_frame(const std::vector<RowText>& rows, const Axis& axis,
                        const std::string& axis_title, double width, double inset) {
  RowFrame frame{{axis_title, width, 0, {}}, {}, {}, width < kNarrowChart ? 2.0 : 5.0};
  if (width < kNarrowChart) {
    draw_above(frame, rows, inset);
  } else {
    draw_beside(frame, rows, measure(rows, width));
  }
  Box area{0, kTitleHeight, width, kTitleHeight};
  if (!frame.lanes.empty()) {
    area = {frame.lanes.front().left, frame.lanes.front().top - 5, frame.lanes.front().right,
            frame.lanes.back().bottom + 5};
  }
  frame.scale = x_scale(axis, area);
  // The names are on the grid, not under it.
  Picture grid{"", width, 0, {}};
  draw_x_axis(grid, axis, area,
              width < kNarrowChart ? GridLines::kHorizontal : GridLines::kVertical);
  frame.picture.shapes.insert(frame.picture.shapes.begin(), grid.shapes.begin(), grid.shapes.end());
  frame.picture.add(Label{{width < kNarrowChart ? 0 : area.left, 12},
                          axis_title,
                          Anchor::kStart,
                          Paint::kMuted,
                          kTickSize});
  frame.picture.height = area.bottom + kAxisHeight;
  return frame;
}

void draw_through_lanes(RowFrame& frame, double x, Paint paint) {
  const double reach = frame.lane_reach;
  for (const Box& lane : frame.lanes) {
    frame.picture.add(Line{{x, lane.top - reach}, {x, lane.bottom + reach}, paint, 1.5});
  }
}

}  // namespace rematch
