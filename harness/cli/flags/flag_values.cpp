#include "harness/cli/flags/flag_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/training/optimizer_choice.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kSchedules = {"whole_region", "on_demand", "both",
                                                  kUsualSchedule};
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 30);

template <class Number>
struct NumberWithUnit {
  Number number{};
  std::string_view unit;  // the rest of the text after the number
};

// Returns nothing if `text` does not begin with a number.
template <class Number>
std::optional<NumberWithUnit<Number>> number_with_unit(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  return NumberWithUnit<Number>{number,
                                std::string_view(rest, static_cast<std::size_t>(end - rest))};
}

// Parses a number with one of `units`, and multiplies the number by the unit's factor. Returns
// nothing if the unit is unknown, or if the number is infinite or not above 0.
template <std::size_t size>
std::optional<double> in_units(std::string_view text,
                               const std::pair<std::string_view, double> (&units)[size]) {
  const auto read = number_with_unit<double>(text);
  if (!read || !std::isfinite(read->number) || !(read->number > 0)) return std::nullopt;
  for (const auto& [unit, factor] : units) {
    if (read->unit == unit) return read->number * factor;
  }
  return std::nullopt;
}

// Returns nothing unless `text` is a percentage from 0% to 100%.
std::optional<double> percent_of(std::string_view text) {
  const auto read = number_with_unit<double>(text);
  const bool is_percentage = read && read->unit == "%" && read->number >= 0 && read->number <= 100;
  return is_percentage ? std::optional(read->number / 100) : std::nullopt;
}

}  // namespace

std::vector<Schedule> parse_schedules(const std::string& text) {
  if (text == kUsualSchedule) return {};
  if (text == "both") return {Schedule::kWholeRegion, Schedule::kOnDemand};
  if (const auto schedule = from_string<Schedule>(text)) return {*schedule};
  throw UsageError("unknown schedule " + in_quotes(text) + did_you_mean(text, kSchedules));
}

OptimizerKind parse_optimizer_kind(const std::string& text) {
  if (const auto kind = optimizer_kind_from_string(text)) return *kind;
  if (const auto choice = optimizer_from_string(text)) return choice->kind;
  throw UsageError("unknown optimizer " + in_quotes(text) +
                   did_you_mean(text, optimizer_kind_names()));
}

std::chrono::milliseconds parse_duration(const std::string& text) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}};
  const auto read = number_with_unit<std::int64_t>(text);
  for (const auto& [unit, milliseconds] : kUnits) {
    if (!read || read->unit != unit || read->number <= 0) continue;
    if (read->number > kLongest.count() / milliseconds) break;
    return std::chrono::milliseconds(read->number * milliseconds);
  }
  throw UsageError(in_quotes(text) +
                   " is not a duration; give a whole number and a unit, at most 30 " +
                   "days: 500ms, 90s, 10min, 1h");
}

double parse_percent(const std::string& text) {
  if (const auto ratio = percent_of(text); ratio && *ratio > 0) return *ratio;
  throw UsageError(in_quotes(text) + " is not a percentage above 0% and up to 100%, such as 2%");
}

double parse_percent_or_zero(const std::string& text) {
  if (const auto ratio = percent_of(text)) return *ratio;
  throw UsageError(in_quotes(text) + " is not a percentage from 0% to 100%, such as 2%");
}

void require_unit(const std::string& flag, const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.back())) == 0) return;
  throw UsageError(flag + " '" + text + "' has no unit; write " + text + "GiB, " + text +
                   "MiB or " + text + "B");
}

Bytes parse_bytes(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                            {"B", 1},
                                                            {"KiB", 1024.0},
                                                            {"MiB", 1024.0 * 1024},
                                                            {"GiB", 1024.0 * 1024 * 1024},
                                                            {"kB", 1e3},
                                                            {"MB", 1e6},
                                                            {"GB", 1e9},
                                                            {"TiB", 1024.0 * 1024 * 1024 * 1024},
                                                            {"TB", 1e12}};
  const auto bytes = in_units(text, kUnits);
  if (bytes && *bytes <= double{kLargestInteger}) return Bytes{std::llround(*bytes)};
  throw UsageError(in_quotes(text) +
                   " is not a size; give a number above 0 and a unit: 24GiB, 512MiB, " +
                   "100MB, 4096B");
}

double parse_rate(const std::string& text) {
  constexpr std::string_view kSecond = "/s";
  if (text.ends_with(kSecond)) {
    try {
      return static_cast<double>(parse_bytes(text.substr(0, text.size() - kSecond.size())).count);
    } catch (const UsageError&) {  // ignored: the error below names rates, not sizes
    }
  }
  throw UsageError(in_quotes(text) +
                   " is not a rate; give a size above 0 per second: 50GB/s, 24GiB/s");
}

double parse_nanoseconds(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  if (const auto nanoseconds = in_units(text, kUnits)) return *nanoseconds;
  throw UsageError(in_quotes(text) +
                   " is not a time; give a number above 0 and a unit: 200us, 1.5ms, 2s");
}

double parse_positive(const std::string& text) {
  constexpr std::pair<std::string_view, double> kNoUnit[] = {{"", 1}};
  if (const auto number = in_units(text, kNoUnit)) return *number;
  throw UsageError(in_quotes(text) + " is not a number above 0");
}

std::vector<std::string> parse_list(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  const auto split = split_at_commas(text);
  if (!split) throw UsageError("the brackets of " + in_quotes(text) + " are unbalanced");
  for (const std::string_view part : *split) {
    if (part.empty()) {
      throw UsageError(in_quotes(text) + " has an empty part; write a,b");
    }
    parts.emplace_back(part);
  }
  return parts;
}

}  // namespace rematch
