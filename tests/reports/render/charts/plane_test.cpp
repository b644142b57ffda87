#include "reports/render/charts/plane.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch::chart {
namespace {

std::vector<std::string> tick_labels(const Picture& picture) {
  std::vector<std::string> texts;
  for (const Shape& shape : picture.shapes) {
    const auto* label = std::get_if<Label>(&shape);
    if (label != nullptr && label->fill == Paint::kMuted && !label->has_halo && label->at.y > 30) {
      texts.push_back(label->text);
    }
  }
  return texts;
}

FrontPanels random_panels(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto ratio = [&random] {
    return std::exp(std::uniform_real_distribution(-2.0, 2.0)(random));
  };
  FrontPanels chart{"Front", {}, {}, {}};
  for (int index = 0; index < 4; ++index) {
    FrontPanel panel{"tokens " + std::to_string(index), "none: 10 MiB, 3 ms", {}};
    for (std::uint32_t spot = 0; spot < 1 + random() % 12; ++spot) {
      panel.spots.push_back(
          {{ratio(), ratio()}, "policy_" + std::to_string(spot), "", random() % 2 == 0});
      chart.peaks.include(panel.spots.back().at.x);
      chart.steps.include(panel.spots.back().at.y);
    }
    chart.panels.push_back(std::move(panel));
  }
  return chart;
}

TEST_CASE("all panels of fronts have the same axes") {
  FrontPanels chart{
      "Front",
      {{"small", "", {{{0.5, 1.1}, "a", "", true}}}, {"large", "", {{{0.9, 3.0}, "b", "", true}}}},
      {0.5, 0.9},
      {1.1, 3.0}};
  const std::vector<Picture> pictures = draw(chart);
  REQUIRE(pictures.size() == 2);
  CHECK(tick_labels(pictures[0]) == tick_labels(pictures[1]));
  // Both axes include the reference, which has ratio 1.
  const auto labels = tick_labels(pictures[0]);
  CHECK(std::count_if(labels.begin(), labels.end(), [](const std::string& text) {
          return text == "1" || text == "1.0" || text == "1.00";
        }) >= 2);
}

TEST_CASE("panels of any fronts stay inside their pictures, and no name covers another",
          "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(40); ++seed) {
    CAPTURE(seed);
    for (const Picture& picture : draw(random_panels(seed))) {
      const Box frame{-0.6, -0.6, picture.width + 0.6, picture.height + 0.6};
      std::vector<Box> labels;
      for (const Shape& shape : picture.shapes) {
        const Box box = extent(shape);
        CHECK(frame.contains(box));
        if (!std::holds_alternative<Label>(shape)) continue;
        const Box core{box.left + 0.5, box.top + 2, box.right - 0.5, box.bottom - 2};
        CHECK(std::none_of(labels.begin(), labels.end(),
                           [&core](const Box& other) { return other.overlaps(core); }));
        labels.push_back(core);
      }
      CHECK_FALSE(to_svg(picture).empty());
    }
  }
}

TEST_CASE("every point of a panel is named beside its marker or in the legend", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(40); ++seed) {
    const FrontPanels chart = random_panels(seed);
    const std::vector<Picture> pictures = draw(chart);
    for (std::size_t panel = 0; panel < pictures.size(); ++panel) {
      std::string words;
      for (const Key& key : pictures[panel].legend) words += key.text + ", ";
      for (const Shape& shape : pictures[panel].shapes) {
        if (const auto* label = std::get_if<Label>(&shape)) words += label->text + ", ";
      }
      for (const FrontSpot& spot : chart.panels[panel].spots) {
        CAPTURE(seed, panel);
        CHECK_THAT(words, Catch::Contains(spot.name + ", "));
      }
    }
  }
}

}  // namespace
}  // namespace rematch::chart
