// Explains a point's figures in words: whether the policy saves memory, what it costs in time, and
// why. Pure. The verdict depends on bytes and counts, not on times.
#pragma once

#include <cstdint>
#include <string>

#include "reports/record/point.h"

namespace rematch {

enum class VerdictKind : std::uint8_t {
  kFailed,       // the point did not finish
  kDifferent,    // bits differ from the reference's, or the comparison proves nothing
  kMiscounted,   // executed ops differ from the ops that the plan predicts
  kReference,    // the point with which other points are compared
  kNoReference,  // the report contains no reference point
  kFits,         // the point finished, but the reference did not
  kNoEffect,     // the plan changes nothing
  kLowersPeak,
  kNothingAgainstFull,  // lowers the peak no further than `full`, and recomputes at least as much
  kSavesNothing,  // the peak equals the reference's, although activations are part of the peak
  kCannotLower,   // the peak equals the reference's, and no policy can lower it
  kRaisesPeak,
};

struct Verdict {
  VerdictKind kind = VerdictKind::kNoReference;
  std::string text;
};

// `none` and `full` are the points of these policies with the same model, data and device; null if
// the report has no such points. `full` has the same schedule.
Verdict judge_point(const PointRecord& point, const PointRecord* none, const PointRecord* full);

// Returns the bytes of the peak that no policy can remove: everything except saved and recomputed
// activations. For a peak in the optimizer, this is the whole peak.
Bytes out_of_reach(const MemoryRecord& memory);

// Returns text such as "the backward of blocks.3" or "the optimizer"; "an unknown phase" if the
// phase was not recorded.
std::string describe_place(const MemoryRecord& memory);

// Returns the largest holders at the peak, which make up most of it: "parameters 62 %, gradients 31
// %".
std::string describe_holders(const MemoryRecord& memory);
std::string describe_holders(const HeldBytes& held, Bytes peak);

}  // namespace rematch
