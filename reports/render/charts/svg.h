// Pictures as data: shapes with positions and colours, written as SVG. Tests inspect the shapes.
// This file does no layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rematch::chart {

// A position in units of the picture, with y downwards.
struct Position {
  double x = 0;
  double y = 0;
  bool operator==(const Position&) const = default;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
  double middle() const { return (top + bottom) / 2; }
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool contains(const Box& other) const {
    return left <= other.left && top <= other.top && right >= other.right && bottom >= other.bottom;
  }
};

// The role of a colour. picture.css has the values for light and dark pages. The colours remain
// distinct for people with colour blindness, and in grey print.
enum class Paint : std::uint8_t {
  kClear,
  kSurface,
  kInk,
  kMuted,
  kGrid,
  kAxis,
  kBlue,
  kOrange,
  kTeal,
  kPurple,
  kYellow,
  kPink,
  kDarkGrey,
  kGrey,
  kLightGrey,
};
inline constexpr int kNumPaints = 15;

// A hint appears when the mouse is over the shape, and screen readers read it aloud. It may have
// several lines.
struct Path {
  std::vector<Position> corners;
  Paint stroke = Paint::kAxis;
  Paint fill = Paint::kClear;  // a path with a fill is closed
  double width = 1;
  bool is_dashed = false;
  std::string hint;
};

struct Rectangle {
  Box box;
  Paint fill = Paint::kClear;
  std::string hint;
};

enum class MarkerKind : std::uint8_t { kCircle, kSquare, kCross };

struct Marker {
  MarkerKind kind = MarkerKind::kCircle;
  Position center;
  double radius = 4;
  Paint fill = Paint::kClear;
  Paint stroke = Paint::kClear;
  std::string hint;
};

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

// All text has one size; see Picture::growth.
inline constexpr double kTextSize = 12;
// values of Label::drop for labels beside, below and above `at`
inline constexpr double kCentered = 0.35;
inline constexpr double kBelow = 0.78;
inline constexpr double kAbove = -0.24;

struct Label {
  Position at;
  std::string text;
  Anchor anchor = Anchor::kStart;
  Paint fill = Paint::kInk;
  double drop = 0;  // distance from `at` to the baseline, in units of the text size
  bool is_bold = false;
  bool has_halo = false;  // an outline in the background's colour keeps text over lines readable
  std::string hint;
};

using Shape = std::variant<Path, Rectangle, Marker, Label>;

// An entry of a legend: a marker or symbol of the picture, and its meaning.
struct Key {
  std::string text;
  MarkerKind kind = MarkerKind::kCircle;
  Paint fill = Paint::kClear;
  Paint stroke = Paint::kClear;
  std::string symbol;
};

struct Picture {
  std::string title;  // text for screen readers; the title of a standalone picture
  double width = 0;
  double height = 0;
  std::vector<Shape> shapes = {};  // later shapes cover earlier shapes
  std::vector<Key> legend = {};
  // Text and markers are enlarged by this factor, so that a picture stays legible on a narrow
  // screen. The layout must leave room for this.
  double growth = 1;

  void add(Shape shape);
  void add_words(Position at, std::string text,
                 Anchor anchor = Anchor::kStart);  // adds text in grey
  void add_line(Position from, Position to, Paint stroke, double width = 1);
};

// The growth of pictures that must stay legible on narrow screens. page.css must contain the same
// value.
inline constexpr double kGrowth = 1.6;

// Returns the box of a shape. The width of text is estimated.
Box extent(const Shape& shape, double growth = 1);

// Returns the boxes that a shape's strokes, bars and markers cover. A slanted line gives several
// small boxes. The list is empty for text, areas and grid lines.
std::vector<Box> covered_by(const Shape& shape, double growth = 1);

// Estimates the width of text without a font engine. Uses the widths of DejaVu Sans, the widest of
// the usual interface fonts.
double text_width(std::string_view text);

// Shortens text that is wider than `width`, and appends an ellipsis.
std::string fit_text(std::string_view text, double width);

// Returns an <svg> element for a page that contains picture_styles(). Throws std::logic_error if a
// coordinate is not finite.
std::string to_svg(const Picture& picture);

// Returns the marker of a legend entry as an <svg> element, or the entry's symbol in bold.
std::string to_svg(const Key& key);

// Returns a complete SVG file with styles, background, margin and legend.
std::string to_svg_file(const Picture& picture);

// Returns CSS with the colour of each Paint and the font of text.
std::string picture_styles();

}  // namespace rematch::chart
