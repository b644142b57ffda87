// Formats quantities for people: ASCII, a unit with every number, and only as many digits as
// needed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

std::string format_bytes(Bytes bytes);                       // "1.21 GiB", "512 B"
std::string format_duration(std::chrono::nanoseconds time);  // "12.3 ms"
// Formats a fraction as a percentage without a sign: "41 %", "3.2 %", "under 0.1 %".
std::string format_percent(double fraction);
// Formats a relative change with a sign: "-41 %", "+3.2 %", "0". A change below 0.1 % has no sign:
// "<0.1 %". A change of at least +1000 % is shown as a multiple: "12 times".
std::string format_change(double fraction);
// Formats the relative change from `before` to `now`. Returns "-" if `before` is 0.
std::string format_change(std::int64_t before, std::int64_t now);
std::string format_fixed(double value, int decimals);
// Returns text such as "[0.98 1.02]".
std::string format_interval(const std::array<double, 2>& interval, int decimals,
                            const char* separator = " ");

std::string format_part(std::size_t part, std::size_t all);  // "3 of 24"

// The number of items that satisfy a condition, and the number of all items. words() returns for
// example "3 of 24".
struct Share {
  std::size_t part = 0;
  std::size_t all = 0;

  void count(bool holds) {
    part += holds ? 1 : 0;
    ++all;
  }
  std::string words() const { return format_part(part, all); }
};

// Returns the text with its first letter in upper case.
std::string capitalized(std::string words);

// Turns a name from a file or a flag into words: "saved_activations" becomes "saved activations".
std::string as_words(std::string_view name);

// Formats `total` divided by `steps`: as a whole number if there is no remainder, and with one
// decimal otherwise.
std::string format_per_step(std::int64_t total, int steps);

// Joins at most `most` of the names: "a, b and 3 more".
std::string listed(const std::vector<std::string>& names, std::size_t most);

// Splits a text into words at its spaces, but keeps a number and its unit together.
std::vector<std::string> words_with_units(std::string_view text);

// Breaks a text into lines at its spaces, but keeps a number and its unit on one line. A word
// longer than `width` gets its own line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace rematch
