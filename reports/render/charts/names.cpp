#include "reports/render/charts/names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace rematch::chart {
namespace {

// Maximum number of names that are written beside their markers. Other names get letters.
constexpr std::size_t kMaxPlaced = 120;
constexpr char kFirstLetter = 'a';
constexpr std::size_t kMaxLetters = 26;

double distance(const Position& a, const Position& b) { return std::hypot(a.x - b.x, a.y - b.y); }

// Returns the boxes that names must not cover.
std::vector<Box> obstacles_in(const Picture& picture) {
  std::vector<Box> obstacles;
  for (const Shape& shape : picture.shapes) {
    for (const Box& box : covered_by(shape, picture.growth)) {
      obstacles.push_back({box.left - 1, box.top - 1, box.right + 1, box.bottom + 1});
    }
    if (std::holds_alternative<Label>(shape)) obstacles.push_back(extent(shape, picture.growth));
  }
  return obstacles;
}

std::optional<Label> place(const Picture& picture, const Name& name,
                           const std::vector<Box>& obstacles, const NamePlaces& places) {
  return place_label(name.label, name.at, places.clearance, picture.growth, obstacles, places.area);
}

// For each name, writes a letter beside the marker and adds the name to the legend. If there is no
// room for the letter, adds the name to the legend entry of the nearest letter.
void add_letters(Picture& picture, const std::vector<Name>& names, std::vector<Box> obstacles,
                 const NamePlaces& places) {
  std::vector<std::pair<Position, std::size_t>> placed;  // letters and their legend entries
  std::vector<Name> rest;
  for (const Name& name : names) {
    Name letter = name;
    letter.label.text = std::string(1, static_cast<char>(kFirstLetter + placed.size()));
    const auto label =
        placed.size() < kMaxLetters ? place(picture, letter, obstacles, places) : std::nullopt;
    if (!label) {
      rest.push_back(name);
      continue;
    }
    obstacles.push_back(extent(*label, picture.growth));
    picture.add(*label);
    placed.emplace_back(name.at, picture.legend.size());
    picture.legend.push_back(
        {name.label.text, MarkerKind::kCircle, Paint::kClear, Paint::kClear, label->text});
  }
  for (const Name& name : rest) {
    if (placed.empty()) {
      placed.emplace_back(name.at, picture.legend.size());
      picture.legend.push_back({name.label.text});
      continue;
    }
    const auto nearest =
        std::min_element(placed.begin(), placed.end(), [&name](const auto& a, const auto& b) {
          return distance(a.first, name.at) < distance(b.first, name.at);
        });
    picture.legend[nearest->second].text += ", " + name.label.text;
  }
}

}  // namespace

void add_names(Picture& picture, const std::vector<Name>& names, const NamePlaces& places) {
  std::vector<Box> obstacles = obstacles_in(picture);
  const std::size_t most = obstacles.size() + kMaxPlaced;
  std::vector<Name> without_room;
  for (const Name& name : names) {
    const bool may_fit = obstacles.size() < most && text_width(name.label.text) <= places.longest;
    if (const auto label = may_fit ? place(picture, name, obstacles, places) : std::nullopt) {
      obstacles.push_back(extent(*label, picture.growth));
      picture.add(*label);
    } else {
      without_room.push_back(name);
    }
  }
  add_letters(picture, without_room, std::move(obstacles), places);
}

std::optional<Label> place_label(Label label, Position at, double clearance, double growth,
                                 const std::vector<Box>& obstacles, const Box& bounds) {
  struct Place {
    double right;
    double down;
    Anchor anchor;
    double drop;
  };
  constexpr double kDiagonal = 0.7;
  static constexpr std::array<Place, 8> kPlaces = {{
      {1, 0, Anchor::kStart, kCentered},
      {-1, 0, Anchor::kEnd, kCentered},
      {0, -1, Anchor::kMiddle, kAbove},
      {0, 1, Anchor::kMiddle, kBelow},
      {kDiagonal, -kDiagonal, Anchor::kStart, kAbove},
      {kDiagonal, kDiagonal, Anchor::kStart, kBelow},
      {-kDiagonal, -kDiagonal, Anchor::kEnd, kAbove},
      {-kDiagonal, kDiagonal, Anchor::kEnd, kBelow},
  }};
  constexpr double kFurther = 10;  // added to the distance if all closer places are taken
  for (const double distance : {clearance, clearance + kFurther}) {
    for (const auto& [right, down, anchor, drop] : kPlaces) {
      label.at = {at.x + distance * right, at.y + distance * down};
      label.anchor = anchor;
      label.drop = drop;
      const Box box = extent(label, growth);
      if (bounds.contains(box) &&
          std::none_of(obstacles.begin(), obstacles.end(),
                       [&box](const Box& other) { return other.overlaps(box); })) {
        return label;
      }
    }
  }
  return std::nullopt;
}

}  // namespace rematch::chart
