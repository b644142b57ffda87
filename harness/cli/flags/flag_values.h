// Parses flag values that several subcommands take.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/exit_code.h"
#include "policies/base/bytes.h"
#include "policies/base/text.h"
#include "policies/base/words.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/optimizer_bytes.h"

namespace rematch {

// Upper limits of flags that several subcommands take.
inline constexpr int kMostSteps = 1'000'000;
inline constexpr int kMostThreads = 4096;

// "whole_region", "on_demand" or "both". Throws UsageError.
std::vector<Schedule> parse_schedules(const std::string& text);

// Throws UsageError: "--loss 'x' is unknown".
template <Word T>
T parse_word(const std::string& flag, const std::string& text) {
  if (const auto word = from_string<T>(text)) return *word;
  throw UsageError(flag + " '" + text + "' is unknown" + did_you_mean(text, all_words<T>()));
}

// "90s", "10min", "500ms", "1h". Throws UsageError, also if the unit is missing.
std::chrono::milliseconds parse_duration(const std::string& text);

// "2%", "0.5%". Returns a fraction above 0 and up to 1. Throws UsageError.
double parse_percent(const std::string& text);

// Also accepts "0%", which allows no increase at all. Throws UsageError.
double parse_percent_or_zero(const std::string& text);

// "24GiB", "512MiB", "100MB", "4096". Returns whole bytes above 0. Throws UsageError.
Bytes parse_bytes(const std::string& text);

// Throws UsageError for a bare number. A budget meant in GiB must not be taken as a few bytes.
void require_unit(const std::string& flag, const std::string& text);

// "50GB/s", "24GiB/s". Returns bytes per second. Throws UsageError.
double parse_rate(const std::string& text);

// "200us", "1.5ms", "2s", "50ns". Throws UsageError, also if the unit is missing.
double parse_nanoseconds(const std::string& text);

// "adamw", "sgd(momentum=0.9)": an optimizer whose state is predicted. Throws UsageError.
OptimizerModel parse_optimizer_model(const std::string& text);

// Returns a number above 0. Throws UsageError.
double parse_positive(const std::string& text);

// Splits "a, b(1,2)" into a and b(1,2). Empty for an empty text. Throws UsageError for an empty
// part and for unbalanced brackets.
std::vector<std::string> parse_list(const std::string& text);

}  // namespace rematch
