// Identity of a point as JSON, and the words for its status.
#include <array>

#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/parts_json.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

constexpr std::array kStatuses = {PointStatus::kOk,      PointStatus::kOom,
                                  PointStatus::kTimeout, PointStatus::kCrash,
                                  PointStatus::kSkipped, PointStatus::kInvalid};

}  // namespace

std::string_view to_string(PointStatus status) {
  constexpr std::array<std::string_view, kStatuses.size()> kNames = {"ok",    "oom",     "timeout",
                                                                     "crash", "skipped", "invalid"};
  return kNames.at(static_cast<std::size_t>(status));
}

Json to_value(PointStatus status) { return to_string(status); }

void read_value(const JsonField& field, PointStatus& status) {
  status = read_word(field, kStatuses, "not a status");
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
