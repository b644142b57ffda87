// Quantities as people read them: ASCII, a unit with every number, enough digits and no more.
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
// Without sign: "41 %", "3.2 %", "under 0.1 %".
std::string format_percent(double fraction);
// With sign: "-41 %", "+3.2 %", "0"; from "+1000 %" on as a multiple, "12 times".
std::string format_change(double fraction);
// From `before` to `now`; "-": before is 0.
std::string format_change(std::int64_t before, std::int64_t now);
std::string format_fixed(double value, int decimals);
// "[0.98 1.02]"
std::string format_interval(const std::array<double, 2>& interval, int decimals,
                            const char* separator = " ");

std::string format_part(std::size_t part, std::size_t all);  // "3 of 24"

// How many of all hold.
struct Share {
  std::size_t part = 0;
  std::size_t all = 0;

  void count(bool holds) {
    part += holds ? 1 : 0;
    ++all;
  }
  std::string words() const { return format_part(part, all); }
};

// With a capital first letter.
std::string capitalized(std::string words);

// A name of a file's or a flag's as people write it: "saved_activations" is "saved activations".
std::string as_words(std::string_view name);

// A total over `steps` for one step: whole where it divides, else with one decimal.
std::string format_per_step(std::int64_t total, int steps);

// "a, b and 3 more": at most so many of the names.
std::string listed(const std::vector<std::string>& names, std::size_t most);

// Split at spaces, but not between a number and its unit.
std::vector<std::string> words_with_units(std::string_view text);

// Breaks at spaces, but not between a number and its unit; a word longer than `width` gets a line
// of its own.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace rematch
