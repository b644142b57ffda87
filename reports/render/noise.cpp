#include "reports/render/noise.h"

#include <algorithm>
#include <map>
#include <vector>

#include "policies/base/format.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr std::size_t kMaxNames = 3;  // maximum number of points that one sentence names

struct Finding {
  const char* quality;
  const char* words;  // text after the number of points, such as "noisy" in "2 noisy"
  const char* advice;
};
constexpr const char* kQuieter = "measure again on an idle machine, with more steps and rounds";
constexpr std::array<Finding, 6> kFindings = {
    {{"few_rounds", "with few rounds", "measure again with more rounds"},
     {"noisy", "noisy", kQuieter},
     {"drifting", "drifting", kQuieter},
     {"throttled", "throttled", "check the GPU's cooling and power limit"},
     {"shared_device", "on a shared GPU", "end the other processes on the GPU"},
     {"thrashing", "thrashing", "give thrashing points more memory, or reduce their load"}}};

// Findings about the times of a comparison's points.
struct Findings {
  std::vector<std::string> names;             // names of points whose times are unreliable
  std::map<std::string, int> num_by_quality;  // "noisy"
  // spread of the steps of one process, relative to their median
  double worst_spread = 0;
  std::size_t num_ratios = 0;
  std::size_t num_unsure = 0;
  std::int64_t num_outliers = 0;
};

Findings find(const PolicyComparison& comparison) {
  Findings findings;
  for (const ComparedPoint& compared : comparison.points) {
    const PointRecord& point = *compared.point;
    if (!point.time) continue;
    if (const auto& ratio = point.time->ratio; ratio && ratio->reference != point.policy) {
      ++findings.num_ratios;
      if (ratio->verdict == "unsure") ++findings.num_unsure;
    }
    const auto& quality = point.time->quality;
    if (!quality) continue;
    findings.num_outliers += quality->num_outliers.value_or(0);
    if (quality->verdict == "good") continue;
    findings.names.push_back(name_of(point));
    ++findings.num_by_quality[quality->verdict];
    findings.worst_spread = std::max(findings.worst_spread, quality->noise_ratio.value_or(0));
  }
  return findings;
}

std::string control_words(const PolicyComparison& comparison) {
  std::string words;
  for (const ComparedPoint& compared : comparison.points) {
    const PointRecord& point = *compared.point;
    if (!point.time || !point.time->control) continue;
    const ControlRecord& control = *point.time->control;
    words += "A/A control: the two timings of " + name_of(point) + " differ " +
             (control.interval ? stray_words(*control.interval)
                               : "by " + format_change(control.ratio - 1) + ", in one round") +
             ". ";
  }
  return words;
}

// Returns a sentence about ratios that may be noise, or "". Adds advice only if the times of every
// point are reliable.
std::string ratio_words(const Findings& findings) {
  if (findings.num_unsure == 0) return "";
  const std::string words = format_part(findings.num_unsure, findings.num_ratios) +
                            " step times cannot be distinguished from the reference's";
  return findings.names.empty() ? words + ": " + kFindings.front().advice + ". " : words + ". ";
}

std::string quality_words(const Findings& findings) {
  if (findings.names.empty()) return "";
  std::vector<std::string> kinds;
  std::vector<std::string> advice;
  for (const auto& [quality, number] : findings.num_by_quality) {
    const auto known = std::ranges::find(kFindings, quality, &Finding::quality);
    const bool is_known = known != kFindings.end();
    kinds.push_back(std::to_string(number) + " " + (is_known ? known->words : as_words(quality)));
    const char* todo = is_known ? known->advice : kQuieter;
    if (std::find(advice.begin(), advice.end(), todo) == advice.end()) advice.emplace_back(todo);
  }
  std::string words =
      "Unreliable times: " + joined(kinds) + " (" + listed(findings.names, kMaxNames) + ")";
  if (findings.worst_spread > 0) {
    words += ", steps of one process spread by up to " + format_percent(findings.worst_spread);
  }
  return words + "; " + joined(advice, "; ") + ". ";
}

}  // namespace

bool is_too_noisy(const std::optional<std::array<double, 2>>& ratio_interval) {
  // Recomputing everything makes a step about a third longer. If the upper end of an interval is
  // twice the lower end, the interval is too wide to distinguish policies.
  constexpr double kWidest = 2;
  if (!ratio_interval) return false;
  const auto [low, high] = *ratio_interval;
  return !(high <= kWidest * low);
}

std::string stray_words(const std::array<double, 2>& ratio_interval) {
  if (is_too_noisy(ratio_interval)) {
    return "by more than any policy would: this machine is too noisy for timing";
  }
  return "by " + format_change(ratio_interval[0] - 1) + " to " +
         format_change(ratio_interval[1] - 1);
}

std::string noise_words(const PolicyComparison& comparison) {
  const Findings findings = find(comparison);
  std::string words = control_words(comparison) + ratio_words(findings) + quality_words(findings);
  if (findings.num_outliers > 0) {
    words += std::to_string(findings.num_outliers) + " timed steps are outliers; all are kept. ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

}  // namespace rematch
