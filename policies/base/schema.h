// The file formats' kinds and versions, and the largest integer that every reader of JSON holds
// exactly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rematch {

// Readers that hold numbers as doubles are exact up to here (RFC 8259, section 6).
inline constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

// A format, with the version that this build writes. Another minor version is read: it only adds
// keys.
struct Schema {
  std::string_view kind;
  int minor = 0;

  static constexpr int kMajor = 1;  // of every format
};

inline constexpr Schema kTraceSchema{"trace", 1};
inline constexpr Schema kProfileSchema{"profile", 1};
inline constexpr Schema kLinksSchema{"links"};
inline constexpr Schema kPolicySchema{"policy"};
inline constexpr Schema kPlanSchema{"plan"};
inline constexpr Schema kFrontSchema{"front"};
inline constexpr Schema kLoadsSchema{"loads"};
inline constexpr Schema kPointSchema{"point"};
inline constexpr Schema kReportSchema{"report"};
inline constexpr Schema kCompareSchema{"compare"};
inline constexpr Schema kGateSchema{"gate", 1};
inline constexpr Schema kSweepSchema{"sweep"};
inline constexpr Schema kSweepPlanSchema{"sweep_plan"};
inline constexpr Schema kClaimSchema{"claim"};

// "rematch.gate/1.": what the schema key of every version that this build reads starts with.
std::string schema_prefix(std::string_view kind);

// "rematch.gate/1.1": what this build writes.
std::string schema_name(const Schema& schema);

}  // namespace rematch
