#include "reports/render/text_width.h"

#include <algorithm>
#include <array>

namespace rematch {
namespace {

// Thousandths of the font size, from space to tilde.
constexpr std::array<int, 95> kAdvances = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr int kOtherAdvance = 1000;  // what is not ASCII: as wide as it can be
constexpr std::string_view kEllipsis = "...";

int advance(std::string_view character) {
  if (character.size() != 1) return kOtherAdvance;
  const int index = static_cast<unsigned char>(character[0]) - ' ';
  return index >= 0 && index < static_cast<int>(kAdvances.size())
             ? kAdvances[static_cast<std::size_t>(index)]
             : kOtherAdvance;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf5   ? 0
                             : first >= 0xf0 ? 4
                             : first >= 0xe0 ? 3
                             : first >= 0xc2 ? 2
                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((static_cast<unsigned char>(text[index]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

double text_width(std::string_view text, double size) {
  int total = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(at)));
    total += advance(text.substr(at, length));
    at += length;
  }
  return total * size / 1000;
}

std::string fit_text(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  const double room = width - text_width(kEllipsis, size);
  std::size_t kept = 0;
  for (double used = 0; kept < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(kept)));
    used += text_width(text.substr(kept, length), size);
    if (used > room) break;
    kept += length;
  }
  return std::string(text.substr(0, kept)).append(kEllipsis);
}

}  // namespace rematch
