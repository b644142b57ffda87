// Pictures as data: shapes with positions and roles of colour, written as SVG. A picture can be
// asked what it shows before it is text, so tests look at shapes. No layout here.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace rematch {

// In units of the picture, y downwards; on a page one unit is about one pixel.
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
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool contains(const Box& other) const {
    return left <= other.left && top <= other.top && right >= other.right && bottom >= other.bottom;
  }
};

// What a colour is for; style.h has its values, for light and for dark surroundings. The hues stay
// apart for every kind of colour blindness, and by lightness in print.
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

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };
enum class Weight : std::uint8_t { kNormal, kBold };
// A halo of the background keeps text readable over lines.
enum class Backing : std::uint8_t { kBare, kHalo };
enum class Dash : std::uint8_t { kSolid, kDashed };
enum class MarkerKind : std::uint8_t { kCircle, kSquare, kCross };

// A hint is shown when the mouse rests on the shape, and read aloud; it may have several lines.
struct Rectangle {
  Box box;
  Paint fill = Paint::kClear;
  std::string hint;
};

struct Line {
  Position from;
  Position to;
  Paint stroke = Paint::kAxis;
  double width = 1;
  Dash dash = Dash::kSolid;
  std::string hint;
};

struct Marker {
  MarkerKind kind = MarkerKind::kCircle;
  Position center;
  double radius = 4;
  Paint fill = Paint::kClear;
  Paint stroke = Paint::kClear;
  std::string hint;
};

struct Path {
  std::vector<Position> corners;
  Paint fill = Paint::kClear;  // closes the path
  Paint stroke = Paint::kClear;
  double width = 1;
  std::string hint;
};

struct Label {
  Position baseline;
  std::string text;
  Anchor anchor = Anchor::kStart;
  Paint fill = Paint::kInk;
  double size = 12;
  Weight weight = Weight::kNormal;
  std::string hint;
  Backing backing = Backing::kBare;
};

using Shape = std::variant<Rectangle, Line, Marker, Path, Label>;

struct Picture {
  std::string title;  // read aloud, and the title of a picture that stands alone
  double width = 0;
  double height = 0;
  std::vector<Shape> shapes;  // later ones cover earlier ones

  void add(Rectangle shape);
  void add(Line shape);
  void add(Marker shape);
  void add(Path shape);
  void add(Label shape);
};

// What the shape covers; text by its estimated width.
Box extent(const Shape& shape);

// `part` with its upper left corner at `corner` of `whole`.
void insert(Picture& whole, const Picture& part, Position corner);

// An <svg> element for a page that has the styles of style.h. Throws std::logic_error if a
// coordinate is not finite.
std::string to_svg(const Picture& picture);

// A file that carries its own styles and background.
std::string to_svg_file(const Picture& picture);

}  // namespace rematch
