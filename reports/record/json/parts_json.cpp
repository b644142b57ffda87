// Identities, environments, memory, times and steps as JSON, with the checks that reject edited or
// malformed values.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <system_error>

#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/environment.h"
#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

// Writes the length before each part, so that the boundaries of parts are unambiguous.
void add_part(std::string& label, std::string_view part) {
  label.append(std::to_string(part.size())).append(":").append(part);
}
void add_part(std::string& label, Schedule schedule) { add_part(label, to_string(schedule)); }
template <std::integral Number>
void add_part(std::string& label, Number number) {
  add_part(label, std::to_string(number));
}
void add_part(std::string& label, const std::optional<int>& number) {
  add_part(label, number ? std::to_string(*number) : "");
}
void add_part(std::string& label, const std::map<std::string, std::int64_t>& sizes) {
  add_part(label, sizes.size());
  for (const auto& [name, size] : sizes) {
    add_part(label, name);
    add_part(label, size);
  }
}

void require_as_many(const JsonField& column, std::size_t wanted) {
  if (column.size() == wanted) return;
  column.fail("has " + std::to_string(column.size()) + " entries; op_index has " +
              std::to_string(wanted));
}

// Spelling of the verdict few_rounds in 1.0 reports, which call a round a "block".
constexpr const char* kOldFewRounds = "few_blocks";

// Rejects a sample of zero, which would distort the statistics. A step always takes time.
void require_times(const JsonField& field,
                   const std::vector<std::vector<std::chrono::nanoseconds>>& all) {
  for (std::size_t round = 0; round < all.size(); ++round) {
    for (std::size_t step = 0; step < all[round].size(); ++step) {
      if (all[round][step].count() <= 0)
        field.at(round).at(step).fail("must be above 0, because a step takes time");
    }
  }
}

// The stored median must be the median of the stored samples, because tables show the median, and
// verdicts are computed from the samples.
void require_median_of_samples(const JsonField& field, const TimeRecord& time) {
  if (!time.step_median) return;
  std::vector<double> medians;
  for (const auto& samples : time.samples) {
    if (samples.empty()) return;
    std::vector<double> round;
    for (const auto sample : samples) round.push_back(static_cast<double>(sample.count()));
    medians.push_back(median(std::move(round)));
  }
  if (medians.empty()) return;
  const double step = median(std::move(medians));
  if (std::abs(step - static_cast<double>(time.step_median->count())) <= 1) return;
  field.at("step_median_ns").fail("is not the median of \"samples_ns\"; was the file edited?");
}

void require_start_of_each_round(const JsonField& field, const TimeRecord& time) {
  if (time.starts.empty() || time.starts.size() == time.samples.size()) return;
  field.at("starts").fail("has " + std::to_string(time.starts.size()) +
                          " entries; samples_ns has " + std::to_string(time.samples.size()) +
                          " rounds");
}

// A file stores each loss twice, as bits and as a number, and the two must agree. Checks for
// equality use the bits. Tolerances and tables use the number.
void require_same_loss(const JsonField& field, const StepRecord& step) {
  const std::optional<double> value = number_of_bits(step.loss_bits);
  if (!value) field.at("loss_bits").fail("are not the bits of a float32 or float64");
  const bool is_same = std::isfinite(*value) ? step.loss == *value : !step.loss;
  if (!is_same) field.at("loss").fail("differs from \"loss_bits\"; was the file edited?");
}

}  // namespace

std::string point_key(const PointIdentity& identity) {
  return canonical_sha256(to_value(identity));
}

std::string label_of(const PointIdentity& identity, std::initializer_list<std::string_view> but) {
  std::string label;
  label.reserve(256);  // most labels need at most this many bytes
  visit_fields(identity, [&](const Field& field, const auto& member) {
    if (std::find(but.begin(), but.end(), field.key) == but.end()) add_part(label, member);
  });
  return label;
}

// Omits optional fields without a value, so that a new optional field does not change the
// fingerprints of older reports.
std::string fingerprint(const Environment& environment) {
  Json json = Json::object();
  visit_fields(environment, [&json](const Field& field, const auto& member) {
    if (field.has(kNotInFingerprint)) return;
    Json value = to_value(member);
    if (!field.has(kLater) || !value.is_null()) json[field.key] = std::move(value);
  });
  // Fingerprints of older reports include this key with the value null. Adds the key, so that an
  // equal environment has an equal fingerprint.
  json["device_uuid"] = nullptr;
  return canonical_sha256(json);
}

bool is_in_fingerprint(std::string_view member) {
  const Environment environment;
  bool is_in = false;
  visit_fields(environment, [&](const Field& field, const auto&) {
    is_in = is_in || (field.key == member && !field.has(kNotInFingerprint));
  });
  return is_in;
}

Json to_value(const MemoryTimeline& timeline) {
  Json phase_of_sample = Json::array();
  for (const Phase phase : timeline.phase) phase_of_sample.push_back(static_cast<int>(phase));
  return {{"op_index", timeline.op_index},
          {"phases", to_value(kPhases)},
          {"phase", std::move(phase_of_sample)},
          {"held_bytes", to_value(timeline.bytes)}};
}

void read_value(const JsonField& field, MemoryTimeline& timeline) {
  read_value(field.at("op_index"), timeline.op_index);
  const std::size_t samples = timeline.op_index.size();
  std::vector<std::string> names;
  read_value(field.at("phases"), names);
  require_as_many(field.at("phase"), samples);
  for (const JsonField& sample : field.at("phase").elements()) {
    const std::int64_t index = sample.integer(0, static_cast<std::int64_t>(names.size()) - 1);
    const auto phase = from_string<Phase>(names[static_cast<std::size_t>(index)]);
    if (!phase)
      sample.fail("means '" + names[static_cast<std::size_t>(index)] + "', which is not a phase");
    timeline.phase.push_back(*phase);
  }
  for (const auto& [name, bytes] : field.at("held_bytes").members()) {
    require_as_many(bytes, samples);
  }
  read_value(field.at("held_bytes"), timeline.bytes);
}

void read_value(const JsonField& field, TimeQuality& quality) {
  read_fields(field, quality);
  if (quality.verdict == kOldFewRounds) quality.verdict = "few_rounds";
}

void read_value(const JsonField& field, TimeRecord& time) {
  read_fields(field, time);
  require_times(field.at("samples_ns"), time.samples);
  require_median_of_samples(field, time);
  require_start_of_each_round(field, time);
}

void read_value(const JsonField& field, StepRecord& step) {
  read_fields(field, step);
  require_same_loss(field, step);
}

std::optional<double> number_of_bits(std::string_view bits) {
  constexpr std::string_view kPrefix = "0x";
  constexpr std::size_t kFloatDigits = 8;
  constexpr std::size_t kDoubleDigits = 16;
  if (!bits.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = bits.substr(kPrefix.size());
  if (digits.size() != kFloatDigits && digits.size() != kDoubleDigits) return std::nullopt;
  std::uint64_t word = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, word, /*base=*/16);
  if (error != std::errc() || rest != end) return std::nullopt;
  if (digits.size() == kDoubleDigits) return std::bit_cast<double>(word);
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(word)));
}

}  // namespace rematch
