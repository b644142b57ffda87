#include "reports/render/charts/legend.h"

#include "reports/render/text_width.h"

namespace rematch {
namespace {

constexpr double kLineHeight = 20;
constexpr double kTextStart = 15;
constexpr double kGap = 16;

}  // namespace

Picture draw_legend(const std::vector<LegendEntry>& entries, double width) {
  Picture picture{"Legend", width, entries.empty() ? 0 : kLineHeight, {}};
  double x = 0;
  for (const LegendEntry& entry : entries) {
    const std::string text = fit_text(entry.text, kLegendSize, width - kTextStart);
    const double needed = kTextStart + text_width(text, kLegendSize);
    if (x > 0 && x + needed > width) {
      x = 0;
      picture.height += kLineHeight;
    }
    const double middle = picture.height - kLineHeight / 2;
    picture.add(Marker{entry.marker, {x + 5, middle}, 4.5, entry.fill, entry.stroke, ""});
    picture.add(
        Label{{x + kTextStart, middle + 4}, text, Anchor::kStart, Paint::kMuted, kLegendSize});
    x += needed + kGap;
  }
  return picture;
}

}  // namespace rematch
