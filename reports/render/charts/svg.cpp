#include "reports/render/charts/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "reports/render/markup.h"
#include "reports/render/styles.h"

namespace rematch::chart {
namespace {

// Bold letters are wider than kAdvances by this factor.
constexpr double kBoldFactor = 1.13;
constexpr double kLineHeight = 20;  // height of a legend's line

// Advance widths from space to tilde, in thousandths of the font size.
constexpr std::array<int, 95> kAdvances = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr int kOtherAdvance = 1000;  // assumes that non-ASCII letters are as wide as they are high

double advance(std::string_view character) {
  const auto index = static_cast<std::size_t>(character[0]) - ' ';
  const bool is_known = character.size() == 1 && index < kAdvances.size();
  return kTextSize * (is_known ? kAdvances[index] : kOtherAdvance) / 1000;
}

// Rounds to a tenth of a unit, to keep pages small. The error is less than a pixel.
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

// Returns a class attribute with the classes of a fill and a stroke from picture_styles().
std::string classes(Paint fill, Paint stroke, const char* more = "") {
  std::string names = more;
  const auto add = [&names](char kind, Paint paint) {
    if (paint == Paint::kClear) return;
    names += (names.empty() ? "" : " ") + (kind + std::to_string(static_cast<int>(paint)));
  };
  add('f', fill);
  add('s', stroke);
  return names.empty() ? "" : " class=\"" + names + "\"";
}

std::string element(const char* name, const std::string& attributes, const std::string& hint) {
  std::string text = std::string("<").append(name).append(attributes);
  if (hint.empty()) return text.append("/>");
  text.append("><title>").append(escape_markup(hint)).append("</title></").append(name);
  return text + ">";
}

std::string rectangle(const Box& box) {
  return attribute("x", box.left) + attribute("y", box.top) +
         attribute("width", std::max(0.0, box.width())) +
         attribute("height", std::max(0.0, box.height()));
}

Box around(const Marker& marker, double growth = 1) {
  const auto [x, y] = marker.center;
  const double radius = marker.radius * growth;
  return {x - radius, y - radius, x + radius, y + radius};
}

struct Writer {
  std::string operator()(const Path& shape) const {
    std::string data;
    for (const Position& corner : shape.corners) {
      data.append(data.empty() ? "M" : "L").append(number(corner.x)).append(" ");
      data.append(number(corner.y));
    }
    if (shape.fill != Paint::kClear) data += "Z";
    return element("path",
                   " d=\"" + data + "\"" + classes(shape.fill, shape.stroke) +
                       (shape.width == 1 ? "" : attribute("stroke-width", shape.width)) +
                       (shape.is_dashed ? " stroke-dasharray=\"4 3\"" : ""),
                   shape.hint);
  }

  std::string operator()(const Rectangle& shape) const {
    return element("rect", rectangle(shape.box) + classes(shape.fill, Paint::kClear), shape.hint);
  }

  std::string operator()(const Marker& shape) const {
    const Box box = around(shape);
    const std::string paint = classes(shape.fill, shape.stroke, "m") +
                              (shape.stroke == Paint::kClear ? "" : attribute("stroke-width", 1.5));
    if (shape.kind == MarkerKind::kCircle) {
      return element("circle",
                     attribute("cx", shape.center.x) + attribute("cy", shape.center.y) +
                         attribute("r", shape.radius) + paint,
                     shape.hint);
    }
    if (shape.kind == MarkerKind::kSquare)
      return element("rect", rectangle(box) + paint, shape.hint);
    const std::string left = number(box.left) + " ";
    const std::string right = number(box.right) + " ";
    const std::string strokes = "M" + left + number(box.top) + "L" + right + number(box.bottom) +
                                "M" + right + number(box.top) + "L" + left + number(box.bottom);
    return element("path", " d=\"" + strokes + "\"" + paint, shape.hint);
  }

  std::string operator()(const Label& shape) const {
    constexpr std::array kAnchors = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    const char* more = shape.has_halo ? "halo" : "";
    std::string text = "<text" + attribute("x", shape.at.x) + attribute("y", shape.at.y) +
                       kAnchors.at(static_cast<std::size_t>(shape.anchor)) +
                       classes(shape.fill, Paint::kClear, more);
    if (shape.drop != 0) {
      std::array<char, 24> drop{};
      std::snprintf(drop.data(), drop.size(), " dy=\"%gem\"", shape.drop);
      text += drop.data();
    }
    if (shape.is_bold) text += " font-weight=\"600\"";
    text.append(">").append(escape_markup(shape.text));
    if (!shape.hint.empty()) text.append("<title>").append(escape_markup(shape.hint)) += "</title>";
    return text + "</text>";
  }
};

Box around(const std::vector<Position>& corners) {
  if (corners.empty()) return {};
  Box box{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const Position& corner : corners) {
    box = {std::min(box.left, corner.x), std::min(box.top, corner.y), std::max(box.right, corner.x),
           std::max(box.bottom, corner.y)};
  }
  return box;
}

struct Extent {
  double growth;
  Box operator()(const Path& shape) const { return around(shape.corners); }
  Box operator()(const Rectangle& shape) const { return shape.box; }
  Box operator()(const Marker& shape) const { return around(shape, growth); }
  Box operator()(const Label& shape) const {
    const double size = kTextSize * growth;
    const double width = text_width(shape.text) * growth * (shape.is_bold ? kBoldFactor : 1);
    const double left = shape.at.x - width * static_cast<int>(shape.anchor) / 2;
    const double baseline = shape.at.y + shape.drop * size;
    return {left, baseline - kBelow * size, left + width, baseline - kAbove * size};
  }
};

std::string svg_element(const Picture& picture, const Box& view, double width,
                        const std::string& more, const std::string& content) {
  return "<svg viewBox=\"" + number(view.left) + " " + number(view.top) + " " +
         number(view.width()) + " " + number(view.height()) + "\"" + attribute("width", width) +
         attribute("height", view.height() * width / view.width()) + more +
         " role=\"img\"><title>" + escape_markup(picture.title) + "</title>\n" + content +
         "</svg>\n";
}

std::string shapes_of(const Picture& picture) {
  std::string text;
  for (const Shape& shape : picture.shapes) text += std::visit(Writer{}, shape) + "\n";
  return text;
}

// Adds the legend above the picture, one line per entry. The picture's upper edge is at y = 0.
void add_legend(const Picture& picture, Picture& whole) {
  double middle = -kLineHeight * static_cast<double>(picture.legend.size()) + kLineHeight / 3;
  for (const Key& key : picture.legend) {
    if (key.symbol.empty()) {
      whole.add(Marker{key.kind, {5, middle}, 4.5, key.fill, key.stroke, ""});
    } else {
      whole.add(Label{{0, middle}, key.symbol, Anchor::kStart, Paint::kInk, kCentered, true});
    }
    const double start = 15 + text_width(key.symbol);
    const std::string text = fit_text(key.text, picture.width - start);
    whole.add(Label{{start, middle}, text, Anchor::kStart, Paint::kMuted, kCentered});
    middle += kLineHeight;
  }
}

}  // namespace

// Defined here, because GCC 12 mistakes the inlined move of a variant for a use of uninitialized
// alternatives.
void Picture::add(Shape shape) { shapes.push_back(std::move(shape)); }

void Picture::add_words(Position at, std::string text, Anchor anchor) {
  add(Label{at, std::move(text), anchor, Paint::kMuted});
}

void Picture::add_line(Position from, Position to, Paint stroke, double line_width) {
  add(Path{{from, to}, stroke, Paint::kClear, line_width});
}

Box extent(const Shape& shape, double growth) { return std::visit(Extent{growth}, shape); }

std::vector<Box> covered_by(const Shape& shape, double growth) {
  if (std::holds_alternative<Label>(shape)) return {};
  const auto* path = std::get_if<Path>(&shape);
  if (path == nullptr) return {extent(shape, growth)};
  if (path->stroke == Paint::kGrid || path->stroke == Paint::kClear) return {};
  constexpr double kPiece = 6;
  std::vector<Box> boxes;
  for (std::size_t next = 1; next < path->corners.size(); ++next) {
    const Position& from = path->corners[next - 1];
    const double across = path->corners[next].x - from.x;
    const double down = path->corners[next].y - from.y;
    const int pieces = 1 + static_cast<int>(std::min(std::abs(across), std::abs(down)) / kPiece);
    for (int piece = 0; piece < pieces; ++piece) {
      const auto at = [&](int end) {
        return Position{from.x + across * end / pieces, from.y + down * end / pieces};
      };
      boxes.push_back(around({at(piece), at(piece + 1)}));
    }
  }
  return boxes;
}

double text_width(std::string_view text) {
  double total = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(at)));
    total += advance(text.substr(at, length));
    at += length;
  }
  return total;
}

std::string fit_text(std::string_view text, double width) {
  constexpr std::string_view kEllipsis = "...";
  if (text_width(text) <= width) return std::string(text);
  double room = width - text_width(kEllipsis);
  std::size_t kept = 0;
  while (kept < text.size()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(kept)));
    room -= advance(text.substr(kept, length));
    if (room < 0) break;
    kept += length;
  }
  return std::string(text.substr(0, kept)).append(kEllipsis);
}

std::string to_svg(const Picture& picture) {
  return svg_element(picture, {0, 0, picture.width, picture.height}, picture.width,
                     picture.growth == 1 ? "" : " class=\"grows\"", shapes_of(picture));
}

std::string to_svg(const Key& key) {
  if (!key.symbol.empty()) return "<b>" + escape_markup(key.symbol) + "</b>";
  return "<svg viewBox=\"0 0 12 12\">" +
         Writer{}(Marker{key.kind, {6, 6}, 4.5, key.fill, key.stroke, ""}) + "</svg>";
}

std::string to_svg_file(const Picture& picture) {
  constexpr double kMargin = 16;
  constexpr double kMinWidth = 640;  // a picture is displayed at least this wide, in pixels
  Picture whole{picture.title};
  add_legend(picture, whole);
  const double top = -kLineHeight * static_cast<double>(picture.legend.size());
  const Box view{-kMargin, top - kMargin, picture.width + kMargin, picture.height + kMargin};
  return svg_element(picture, view, std::max(kMinWidth, view.width()),
                     " xmlns=\"http://www.w3.org/2000/svg\" class=\"alone\"",
                     "<style>\n" + picture_styles() + "</style>\n" +
                         Writer{}(Rectangle{view, Paint::kSurface, ""}) + "\n" + shapes_of(whole) +
                         shapes_of(picture));
}

std::string picture_styles() {
  std::string styles(embedded_styles().front().second);
  for (int paint = 1; paint < kNumPaints; ++paint) {
    const std::string value = std::to_string(paint);
    styles += "svg .f" + value + "{fill:var(--p" + value + ")}";
    styles += "svg .s" + value + "{stroke:var(--p" + value + ")}\n";
  }
  return styles;
}

}  // namespace rematch::chart
