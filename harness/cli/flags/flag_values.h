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
inline constexpr int kMaxSteps = 1'000'000;
inline constexpr int kMaxThreads = 4096;

// This value of --schedule runs each policy under usual_schedule() (policies/catalogue/systems.h).
inline constexpr const char* kUsualSchedule = "usual";

// Parses "whole_region", "on_demand", "both" or "usual". Returns no schedule for "usual". Throws
// UsageError.
std::vector<Schedule> parse_schedules(const std::string& text);

// Throws UsageError with a message such as "--loss 'x' is unknown".
template <Word T>
T parse_word(const std::string& flag, const std::string& text) {
  if (const auto word = from_string<T>(text)) return *word;
  throw UsageError(flag + " '" + text + "' is unknown" + did_you_mean(text, all_words<T>()));
}

// Parses a time such as "90s", "10min", "500ms" or "1h". The unit is required. Throws UsageError.
std::chrono::milliseconds parse_duration(const std::string& text);

// Parses a percentage such as "2%" or "0.5%". Returns a fraction above 0 and up to 1. Throws
// UsageError.
double parse_percent(const std::string& text);

// Like parse_percent(), but also accepts "0%". Throws UsageError.
double parse_percent_or_zero(const std::string& text);

// Parses a size such as "24GiB", "512MiB", "100MB" or "4096". Returns whole bytes above 0. Throws
// UsageError.
Bytes parse_bytes(const std::string& text);

// Throws UsageError if `text` is a number without a unit, so that a budget meant in GiB is not read
// as a few bytes.
void require_unit(const std::string& flag, const std::string& text);

// Parses a rate such as "50GB/s" or "24GiB/s". Returns bytes per second. Throws UsageError.
double parse_rate(const std::string& text);

// Parses a short time such as "200us", "1.5ms", "2s" or "50ns". The unit is required. Throws
// UsageError.
double parse_nanoseconds(const std::string& text);

// Parses the optimizer of a prediction, such as "adamw" or "sgd(momentum=0.9)". Accepts learning
// rates like `run`, although predictions do not depend on them. Throws UsageError.
OptimizerKind parse_optimizer_kind(const std::string& text);

// Parses a number above 0. Throws UsageError.
double parse_positive(const std::string& text);

// Splits a list such as "a, b(1,2)" into a and b(1,2). Returns an empty list for an empty text.
// Throws UsageError for an empty part and for unbalanced brackets.
std::vector<std::string> parse_list(const std::string& text);

}  // namespace rematch
