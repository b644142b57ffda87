#include "harness/cli/flag_values.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/cli/exit_code.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kSchedules = {"whole_region", "on_demand", "both"};
const std::vector<std::string_view> kOptimizers = {"adamw", "adamw(learning_rate=1e-3)", "none"};
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 30);

#ifdef REMATCH_LIBTORCH
constexpr int kMostBlocks = 1000;

// A whole number that is all of `text`.
std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}
#endif

}  // namespace

std::vector<Schedule> parse_schedules(const std::string& text) {
  if (text == "both") return {Schedule::kWholeRegion, Schedule::kOnDemand};
  if (const auto schedule = schedule_from_string(text)) return {*schedule};
  throw UsageError("unknown schedule '" + text + "'" + did_you_mean(text, kSchedules));
}

std::chrono::milliseconds parse_duration(const std::string& text) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}};
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, milliseconds] : kUnits) {
    if (error != std::errc() || unit != name || count <= 0) continue;
    if (count > kLongest.count() / milliseconds) break;
    return std::chrono::milliseconds(count * milliseconds);
  }
  throw UsageError("'" + text + "' is no duration; give a number from 1 and a unit, at most 30 " +
                   "days: 500ms, 90s, 10min, 1h");
}

double parse_percent(const std::string& text) {
  double percent = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error == std::errc() && std::string_view(rest, static_cast<std::size_t>(end - rest)) == "%" &&
      percent > 0 && percent <= 100) {
    return percent / 100;
  }
  throw UsageError("'" + text + "' is no percentage above 0% and up to 100%, such as 2%");
}

#ifdef REMATCH_LIBTORCH
BlockRule parse_blocks(const std::string& blocks, const std::string& precision) {
  const std::size_t colon = blocks.find(':');
  const std::string_view text = blocks;
  const auto least = whole_number(text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : whole_number(text.substr(colon + 1));
  if (!least || !most || *least < 0 || *most < *least || *most > kMostBlocks) {
    throw UsageError("--blocks '" + blocks + "' is neither a number from 0 to " +
                     std::to_string(kMostBlocks) + " nor a range of them such as 4:8");
  }
  return {.least = *least, .most = *most, .precision = parse_percent(precision)};
}

OptimizerChoice parse_optimizer(const std::string& text) {
  if (const auto choice = optimizer_from_string(text)) return *choice;
  throw UsageError("unknown optimizer '" + text + "'" + did_you_mean(text, kOptimizers));
}
#endif

}  // namespace rematch
