#include "reports/render/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "reports/render/markup.h"
#include "reports/render/style.h"
#include "reports/render/text_width.h"

namespace rematch {
namespace {

// Text in capitals and with descenders stays between these, in parts of its size.
constexpr double kAscent = 0.78;
constexpr double kDescent = 0.24;
// Bold letters are wider than the table's.
constexpr double kBoldFactor = 1.13;

// A tenth of a unit is finer than a pixel; short numbers keep a page of hundreds of pictures small.
std::string number(double value) {
  if (!std::isfinite(value)) {
    throw std::logic_error("a coordinate of a picture is not finite");
  }
  std::array<char, 48> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f", value);
  std::string text = buffer.data();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string attribute(const char* name, double value) {
  return std::string(" ").append(name).append("=\"").append(number(value)).append("\"");
}

// Classes f<n> and s<n> of style.cpp.
std::string paint_class(Paint fill, Paint stroke) {
  std::string names;
  if (fill != Paint::kClear) names += "f" + std::to_string(static_cast<int>(fill));
  if (stroke != Paint::kClear) {
    names += (names.empty() ? "s" : " s") + std::to_string(static_cast<int>(stroke));
  }
  return names.empty() ? "" : " class=\"" + names + "\"";
}

std::string label_class(const Label& label) {
  return " class=\"f" + std::to_string(static_cast<int>(label.fill)) +
         (label.backing == Backing::kHalo ? " halo\"" : "\"");
}

std::string stroke_width(Paint stroke, double width) {
  return stroke == Paint::kClear || width == 1 ? "" : attribute("stroke-width", width);
}

std::string element(const char* name, const std::string& attributes, const std::string& hint) {
  std::string text = std::string("<").append(name).append(attributes);
  if (hint.empty()) return text.append("/>");
  return text.append("><title>").append(escape_markup(hint)).append("</title></").append(name) +
         ">";
}

std::string corner_list(const Path& path) {
  std::string data;
  for (const Position& corner : path.corners) {
    data.append(data.empty() ? "M" : "L").append(number(corner.x)).append(" ");
    data.append(number(corner.y));
  }
  return path.fill == Paint::kClear ? data : data + "Z";
}

struct Writer {
  std::string operator()(const Rectangle& shape) const {
    return element("rect",
                   attribute("x", shape.box.left) + attribute("y", shape.box.top) +
                       attribute("width", std::max(0.0, shape.box.width())) +
                       attribute("height", std::max(0.0, shape.box.height())) +
                       paint_class(shape.fill, Paint::kClear),
                   shape.hint);
  }

  std::string operator()(const Line& shape) const {
    return element("line",
                   attribute("x1", shape.from.x) + attribute("y1", shape.from.y) +
                       attribute("x2", shape.to.x) + attribute("y2", shape.to.y) +
                       paint_class(Paint::kClear, shape.stroke) +
                       stroke_width(shape.stroke, shape.width) +
                       (shape.dash == Dash::kDashed ? " stroke-dasharray=\"4 3\"" : ""),
                   shape.hint);
  }

  std::string operator()(const Marker& shape) const {
    const std::string paint = paint_class(shape.fill, shape.stroke);
    const auto [x, y] = shape.center;
    const double radius = shape.radius;
    if (shape.kind == MarkerKind::kCircle) {
      return element("circle",
                     attribute("cx", x) + attribute("cy", y) + attribute("r", radius) + paint +
                         stroke_width(shape.stroke, 1.5),
                     shape.hint);
    }
    if (shape.kind == MarkerKind::kSquare) {
      return element("rect",
                     attribute("x", x - radius) + attribute("y", y - radius) +
                         attribute("width", 2 * radius) + attribute("height", 2 * radius) + paint +
                         stroke_width(shape.stroke, 1.5),
                     shape.hint);
    }
    const std::string strokes = "M" + number(x - radius) + " " + number(y - radius) + "L" +
                                number(x + radius) + " " + number(y + radius) + "M" +
                                number(x + radius) + " " + number(y - radius) + "L" +
                                number(x - radius) + " " + number(y + radius);
    return element("path", " d=\"" + strokes + "\"" + paint + " stroke-width=\"2\"", shape.hint);
  }

  std::string operator()(const Path& shape) const {
    return element("path",
                   " d=\"" + corner_list(shape) + "\"" + paint_class(shape.fill, shape.stroke) +
                       stroke_width(shape.stroke, shape.width),
                   shape.hint);
  }

  std::string operator()(const Label& shape) const {
    constexpr std::array kAnchors = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    std::string text = "<text" + attribute("x", shape.baseline.x) +
                       attribute("y", shape.baseline.y) +
                       kAnchors.at(static_cast<std::size_t>(shape.anchor)) +
                       attribute("font-size", shape.size) + label_class(shape);
    if (shape.weight == Weight::kBold) text += " font-weight=\"600\"";
    text.append(">").append(escape_markup(shape.text));
    if (!shape.hint.empty()) text.append("<title>").append(escape_markup(shape.hint)) += "</title>";
    return text + "</text>";
  }
};

Box around(const std::vector<Position>& corners) {
  if (corners.empty()) return {};
  Box box{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const Position& corner : corners) {
    box.left = std::min(box.left, corner.x);
    box.right = std::max(box.right, corner.x);
    box.top = std::min(box.top, corner.y);
    box.bottom = std::max(box.bottom, corner.y);
  }
  return box;
}

struct Extent {
  Box operator()(const Rectangle& shape) const { return shape.box; }
  Box operator()(const Line& shape) const { return around({shape.from, shape.to}); }
  Box operator()(const Marker& shape) const {
    return {shape.center.x - shape.radius, shape.center.y - shape.radius,
            shape.center.x + shape.radius, shape.center.y + shape.radius};
  }
  Box operator()(const Path& shape) const { return around(shape.corners); }
  Box operator()(const Label& shape) const {
    const double width =
        text_width(shape.text, shape.size) * (shape.weight == Weight::kBold ? kBoldFactor : 1);
    const double left = shape.baseline.x - (shape.anchor == Anchor::kStart    ? 0
                                            : shape.anchor == Anchor::kMiddle ? width / 2
                                                                              : width);
    return {left, shape.baseline.y - kAscent * shape.size, left + width,
            shape.baseline.y + kDescent * shape.size};
  }
};

struct Mover {
  Position by;
  Position moved(Position from) const { return {from.x + by.x, from.y + by.y}; }
  void operator()(Rectangle& shape) const {
    shape.box = {shape.box.left + by.x, shape.box.top + by.y, shape.box.right + by.x,
                 shape.box.bottom + by.y};
  }
  void operator()(Line& shape) const {
    shape.from = moved(shape.from);
    shape.to = moved(shape.to);
  }
  void operator()(Marker& shape) const { shape.center = moved(shape.center); }
  void operator()(Path& shape) const {
    for (Position& corner : shape.corners) corner = moved(corner);
  }
  void operator()(Label& shape) const { shape.baseline = moved(shape.baseline); }
};

std::string opening(const Picture& picture, const std::string& more) {
  return "<svg viewBox=\"0 0 " + number(picture.width) + " " + number(picture.height) + "\"" +
         attribute("width", picture.width) + attribute("height", picture.height) + more +
         " role=\"img\"><title>" + escape_markup(picture.title) + "</title>\n";
}

std::string shapes_of(const Picture& picture) {
  std::string text;
  for (const Shape& shape : picture.shapes) text += std::visit(Writer{}, shape) + "\n";
  return text;
}

}  // namespace

void Picture::add(Rectangle shape) { shapes.emplace_back(std::move(shape)); }
void Picture::add(Line shape) { shapes.emplace_back(std::move(shape)); }
void Picture::add(Marker shape) { shapes.emplace_back(std::move(shape)); }
void Picture::add(Path shape) { shapes.emplace_back(std::move(shape)); }
void Picture::add(Label shape) { shapes.emplace_back(std::move(shape)); }

Box extent(const Shape& shape) { return std::visit(Extent{}, shape); }

void insert(Picture& whole, const Picture& part, Position corner) {
  for (Shape shape : part.shapes) {
    std::visit(Mover{corner}, shape);
    whole.shapes.push_back(std::move(shape));
  }
}

std::string to_svg(const Picture& picture) {
  return opening(picture, "") + shapes_of(picture) + "</svg>\n";
}

std::string to_svg_file(const Picture& picture) {
  const Picture background{
      "", 0, 0, {Rectangle{{0, 0, picture.width, picture.height}, Paint::kSurface, ""}}};
  return opening(picture, " xmlns=\"http://www.w3.org/2000/svg\" class=\"alone\"") + "<style>\n" +
         picture_styles() + "</style>\n" + shapes_of(background) + shapes_of(picture) + "</svg>\n";
}

}  // namespace rematch
