#include "reports/render/charts/axes.h"

#include <algorithm>

#include "reports/render/text_width.h"

namespace rematch {
namespace {

constexpr double kLabelGap = 8;
constexpr double kLeastSpace = 6;  // between two labels

}  // namespace

double y_labels_width(const Axis& axis) {
  double widest = 0;
  for (const Tick& tick : axis.ticks) {
    widest = std::max(widest, text_width(tick.text, kTickSize));
  }
  return widest + kLabelGap;
}

Scale x_scale(const Axis& axis, const Box& area) {
  return {axis.low, axis.high, area.left, area.right, axis.spacing};
}

Scale y_scale(const Axis& axis, const Box& area) {
  return {axis.low, axis.high, area.bottom, area.top, axis.spacing};
}

void draw_y_axis(Picture& picture, const Axis& axis, const Box& area) {
  const Scale scale = y_scale(axis, area);
  double free_below = area.bottom + kTickSize;
  for (const Tick& tick : axis.ticks) {
    const double y = scale(tick.value);
    picture.add(Line{{area.left, y}, {area.right, y}, Paint::kGrid});
    const Label label{
        {area.left - kLabelGap, y + 4}, tick.text, Anchor::kEnd, Paint::kMuted, kTickSize};
    const Box box = extent(label);
    if (box.bottom > free_below) continue;
    free_below = box.top;
    picture.add(label);
  }
}

void draw_x_axis(Picture& picture, const Axis& axis, const Box& area, GridLines lines) {
  const Scale scale = x_scale(axis, area);
  double free_from = 0;
  for (const Tick& tick : axis.ticks) {
    const double x = scale(tick.value);
    if (lines == GridLines::kVertical) {
      picture.add(Line{{x, area.top}, {x, area.bottom}, Paint::kGrid});
    }
    Label label{{x, area.bottom + 17}, tick.text, Anchor::kMiddle, Paint::kMuted, kTickSize};
    // The outermost labels stay inside the picture.
    const double half = text_width(tick.text, kTickSize) / 2;
    label.baseline.x = std::clamp(x, half, std::max(half, picture.width - half));
    const Box box = extent(label);
    if (box.left < free_from) continue;
    free_from = box.right + kLeastSpace;
    picture.add(label);
  }
}

}  // namespace rematch
