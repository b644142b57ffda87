// The meaning of a point's figures in words: is it worth its time, and if not, why.
// Pure; bytes and counts decide, times only say at which price.
#pragma once

#include <cstdint>
#include <string>

#include "reports/record/point.h"

namespace rematch {

enum class VerdictKind : std::uint8_t {
  kFailed,       // did not finish
  kDifferent,    // other bits than the reference, or no proof of equal ones
  kMiscounted,   // executed other ops than its plan predicts
  kReference,    // it is the one the others are held against
  kNoReference,  // nothing to compare with
  kFits,         // finished where the reference did not
  kNoEffect,     // the plan changes nothing
  kLowersPeak,
  kNothingAgainstFull,  // lowers the peak, but full does so for no more ops
  kSavesNothing,        // the same peak, though activations hold part of it
  kCannotLower,         // the same peak, and no policy can lower it
  kRaisesPeak,
};

struct Verdict {
  VerdictKind kind = VerdictKind::kNoReference;
  std::string text;
};

// `none` and `full` are the points of these policies with the same model, data and device; null
// where the report has none. `full` has the same schedule.
Verdict judge_point(const PointRecord& point, const PointRecord* none, const PointRecord* full);

// Bytes of the peak that no policy can remove: everything but saved and recomputed activations.
// A peak in the optimizer is out of reach whole.
Bytes out_of_reach(const MemoryRecord& memory);

// "the backward of blocks.3", "the optimizer"; "an unknown phase" where it was not recorded.
std::string describe_place(const MemoryRecord& memory);

// The largest holders at the peak, as many as make up most of it: "parameters 62 %, gradients 31
// %".
std::string describe_holders(const MemoryRecord& memory);
std::string describe_holders(const HeldBytes& held, Bytes peak);

}  // namespace rematch
