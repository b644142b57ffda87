#include "harness/cli/flag_values.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "harness/cli/exit_code.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kSchedules = {"whole_region", "on_demand", "both"};
const std::vector<std::string_view> kOptimizers = {"adamw", "adamw(learning_rate=1e-3)", "none"};
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 30);

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

#ifdef REMATCH_LIBTORCH
OptimizerChoice parse_optimizer(const std::string& text) {
  if (const auto choice = optimizer_from_string(text)) return *choice;
  throw UsageError("unknown optimizer '" + text + "'" + did_you_mean(text, kOptimizers));
}
#endif

}  // namespace rematch
