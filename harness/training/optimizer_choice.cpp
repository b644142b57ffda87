#include "harness/training/optimizer_choice.h"

#include <array>
#include <charconv>
#include <cmath>

#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kNothingName = "none";
constexpr std::string_view kAdamWName = "adamw";
constexpr std::string_view kRateOpening = "adamw(learning_rate=";

}  // namespace

std::optional<OptimizerChoice> optimizer_from_string(std::string_view text) {
  if (text == kNothingName) return OptimizerKind::kNothing;
  if (text == kAdamWName) return OptimizerKind::kAdamW;
  if (!text.starts_with(kRateOpening) || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(kRateOpening.size());
  text.remove_suffix(1);
  const std::optional<double> rate = parse_number<double>(text);
  if (!rate || !std::isfinite(*rate) || *rate <= 0) return std::nullopt;
  OptimizerChoice choice;
  choice.settings.learning_rate = *rate;
  return choice;
}

std::string to_string(const OptimizerChoice& choice) {
  if (choice.kind == OptimizerKind::kNothing) return std::string(kNothingName);
  const double rate = choice.settings.learning_rate;
  if (rate == AdamWSettings{}.learning_rate) return std::string(kAdamWName);
  std::array<char, 32> digits{};  // the shortest text that parses to the same number
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), rate);
  std::string text(kRateOpening);
  return text.append(digits.data(), end).append(")");
}

}  // namespace rematch
