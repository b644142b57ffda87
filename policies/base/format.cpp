#include "policies/base/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "policies/base/text.h"

namespace rematch {

std::string format_fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

namespace {

// Larger changes are shown as a multiple, because "+374395 %" is hard to read.
constexpr double kLargestPercent = 10;

// Formats a number below about 1000 with three significant digits.
std::string three_digits(double value) {
  if (value < 9.995) return format_fixed(value, 2);
  if (value < 99.95) return format_fixed(value, 1);
  return format_fixed(value, 0);
}

bool is_unit(std::string_view word) {
  while (!word.empty() && std::string_view(",;.:)").find(word.back()) != std::string_view::npos) {
    word.remove_suffix(1);
  }
  constexpr std::array<std::string_view, 10> kUnits = {"%",   "B",  "KiB", "MiB", "GiB",
                                                       "TiB", "ns", "us",  "ms",  "s"};
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

bool ends_in_digit(std::string_view word) {
  return std::isdigit(static_cast<unsigned char>(word.back())) != 0;
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  if (bytes.count < 0) return std::string("-").append(format_bytes({-bytes.count}));
  if (bytes.count < 1024) return std::to_string(bytes.count) + " B";
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes.count) / 1024;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + " " + kUnits.at(unit);
}

std::string format_duration(std::chrono::nanoseconds time) {
  constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  auto value = static_cast<double>(time.count());
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return (unit == 0 ? std::to_string(time.count()) : three_digits(value)) + " " + kUnits.at(unit);
}

std::string format_percent(double fraction) {
  const double percent = std::abs(fraction) * 100;
  if (percent == 0) return "0 %";
  if (percent < 0.1) return "under 0.1 %";
  return format_fixed(percent, percent < 9.95 ? 1 : 0) + " %";
}

std::string format_change(double fraction) {
  if (fraction == 0) return "0";
  if (fraction >= kLargestPercent) return format_fixed(fraction + 1, 0) + " times";
  if (std::abs(fraction) < 0.001) return "<0.1 %";
  return (fraction < 0 ? "-" : "+") + format_percent(fraction);
}

std::string format_change(std::int64_t before, std::int64_t now) {
  if (before == 0) return "-";
  return format_change(static_cast<double>(now - before) / static_cast<double>(before));
}

std::string format_interval(const std::array<double, 2>& interval, int decimals,
                            const char* separator) {
  return "[" + format_fixed(interval[0], decimals) + separator +
         format_fixed(interval[1], decimals) + "]";
}

std::string format_part(std::size_t part, std::size_t all) {
  return std::to_string(part) + " of " + std::to_string(all);
}

std::string capitalized(std::string words) {
  if (!words.empty()) {
    words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
  }
  return words;
}

std::string as_words(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string format_per_step(std::int64_t total, int steps) {
  if (steps > 0 && total % steps == 0) return std::to_string(total / steps);
  return format_fixed(static_cast<double>(total) / std::max(1, steps), 1);
}

std::string listed(const std::vector<std::string>& names, std::size_t most) {
  if (names.size() <= most) return joined(names);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(most);
  return joined(std::vector(names.begin(), end)) + " and " + std::to_string(names.size() - most) +
         " more";
}

std::vector<std::string> words_with_units(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    start = end + 1;
    if (!words.empty() && ends_in_digit(words.back()) && is_unit(word)) {
      words.back().append(" ").append(word);
    } else if (!word.empty()) {
      words.emplace_back(word);
    }
  }
  return words;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : words_with_units(text)) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
  }
  return lines;
}

}  // namespace rematch
