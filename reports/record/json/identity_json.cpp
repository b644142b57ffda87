// Identity and failure of a point as JSON, and the words for schedules, phases and statuses.
#include <algorithm>
#include <array>

#include "policies/base/canonical_json.h"
#include "policies/base/json.h"
#include "reports/record/fields/point_fields.h"
#include "reports/record/json/parts_json.h"

namespace rematch {
namespace {

constexpr std::array kSchedules = {Schedule::kWholeRegion, Schedule::kOnDemand};
constexpr std::array kStatuses = {PointStatus::kOk,      PointStatus::kOom,
                                  PointStatus::kTimeout, PointStatus::kCrash,
                                  PointStatus::kSkipped, PointStatus::kInvalid};

// `what` as in "not a phase".
template <class Word, std::size_t Size>
Word word_from_json(const JsonField& field, const std::array<Word, Size>& words, const char* what) {
  std::string allowed;
  for (const Word word : words) {
    if (to_string(word) == field.string()) return word;
    allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(word));
  }
  field.fail("'" + field.string() + "' is " + what + "; allowed are " + allowed);
}

}  // namespace

std::string_view to_string(PointStatus status) {
  constexpr std::array<std::string_view, kStatuses.size()> kNames = {"ok",    "oom",     "timeout",
                                                                     "crash", "skipped", "invalid"};
  return kNames.at(static_cast<std::size_t>(status));
}

Json to_value(Schedule schedule) { return to_string(schedule); }
Json to_value(PointStatus status) { return to_string(status); }
Json to_value(Phase phase) { return to_string(phase); }

void read_value(const JsonField& field, Schedule& schedule) {
  schedule = word_from_json(field, kSchedules, "not a schedule");
}
void read_value(const JsonField& field, PointStatus& status) {
  status = word_from_json(field, kStatuses, "not a status");
}
void read_value(const JsonField& field, Phase& phase) {
  phase = word_from_json(field, kPhases, "not a phase");
}

Json identity_to_json(const PointIdentity& identity) { return to_value(identity); }

PointIdentity identity_from_json(const JsonField& field) {
  PointIdentity identity;
  read_value(field, identity);
  return identity;
}

std::string point_key(const PointIdentity& identity) {
  return canonical_sha256(identity_to_json(identity));
}

}  // namespace rematch
