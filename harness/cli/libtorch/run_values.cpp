#include "harness/cli/libtorch/run_values.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/measure/memory.h"
#include "harness/training/device.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kOptimizers = {"adamw", "adamw(learning_rate=1e-3)", "none"};
constexpr int kMostRounds = 1000;

// A whole number that is all of `text`.
std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

RoundRule parse_rounds(const std::string& rounds, const std::string& precision) {
  const std::size_t colon = rounds.find(':');
  const std::string_view text = rounds;
  const auto least = whole_number(text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : whole_number(text.substr(colon + 1));
  if (!least || !most || *least < 0 || *most < *least || *most > kMostRounds) {
    throw UsageError("--rounds '" + rounds + "' is neither a number from 0 to " +
                     std::to_string(kMostRounds) + " nor a range of them such as 4:8");
  }
  return {.least = *least, .most = *most, .precision = parse_percent(precision)};
}

OptimizerChoice parse_optimizer(const std::string& text) {
  if (const auto choice = optimizer_from_string(text)) return *choice;
  throw UsageError("unknown optimizer " + in_quotes(text) + did_you_mean(text, kOptimizers));
}

void measure_by(const MeasureFlags& flags, ComparisonSettings& settings) {
  settings.variants.seed = static_cast<std::uint64_t>(flags.seed);
  settings.num_steps = flags.num_steps;
  settings.rounds = parse_rounds(flags.rounds, flags.precision);
  settings.children = {parse_duration(flags.timeout), flags.num_retries, nullptr};
  settings.fresh = flags.fresh;
}

void run_on(const std::string& device, const std::string& allocator, VariantSettings& settings) {
  settings.device = require(usable_device(device));
  settings.allocator = require(allocator_of(settings.device, allocator, allocator_configuration()));
  if (names_cuda(settings.device)) settings.round = kCudaRounding;
}

}  // namespace rematch
