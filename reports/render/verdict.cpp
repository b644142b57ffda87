#include "reports/render/verdict.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "policies/base/format.h"
#include "reports/record/amount_of.h"
#include "reports/record/unplanned_counts.h"
#include "reports/render/noise.h"

namespace rematch {
namespace {

// If activations are less than this share of the peak, checkpointing cannot noticeably lower the
// peak.
constexpr double kNegligibleShare = 0.01;
// Lists the largest holders that together hold this share of the peak.
constexpr double kMaxShareOfPeak = 0.8;

double share(Bytes part, Bytes whole) {
  return whole.count == 0 ? 0 : static_cast<double>(part.count) / static_cast<double>(whole.count);
}

const MemoryRecord* measured_memory(const PointRecord* point) {
  if (point == nullptr || !point->memory || !point->memory->peak_allocated) return nullptr;
  return &*point->memory;
}

bool is_bound(const MemoryRecord& memory) {
  const bool in_optimizer = memory.peak_phase == Phase::kOptimizer;
  if (memory.holders_at_peak.empty() && !in_optimizer) return false;
  const Bytes peak = *memory.peak_allocated;
  return share(peak - out_of_reach(memory), peak) < kNegligibleShare;
}

std::string held_there(const MemoryRecord& memory) {
  const std::string holders = describe_holders(memory);
  return "in " + describe_place(memory) + (holders.empty() ? "" : ", held by " + holders);
}

// Returns text such as " for 23 % more time", or the reason why the time is unknown.
std::string price(const PointRecord& point) {
  if (!point.time || !point.time->ratio) return "; time not measured";
  const StepRatioRecord& ratio = *point.time->ratio;
  // Names the reference of the ratio if it is not `none`, which happens if `none` has no time.
  const std::string than = ratio.reference == "none" ? "" : " than " + ratio.reference;
  if (ratio.verdict == "slower") {
    return " for " + format_percent(ratio.ratio - 1) + " more time" + than;
  }
  if (ratio.verdict == "faster") {
    return " and takes " + format_percent(1 - ratio.ratio) + " less time" + than;
  }
  if (ratio.verdict == "same") return " for no more time" + than;
  return is_too_noisy(ratio.interval) ? "; too noisy to measure" : "; time unsure";
}

// True if the point recomputes at least as many ops as `full`, in every class.
bool recomputes_as_much(const PointRecord& point, const PointRecord& full) {
  if (!point.counts || !full.counts) return false;
  if (point.counts->counted_steps != full.counts->counted_steps) return false;
  constexpr auto kRecompute = static_cast<std::size_t>(Phase::kRecompute);
  const auto& mine = point.counts->by_class[kRecompute];
  const auto& theirs = full.counts->by_class[kRecompute];
  if (theirs.empty()) return false;
  return std::all_of(theirs.begin(), theirs.end(), [&mine](const auto& entry) {
    return entry.second <= amount_of(mine, entry.first);
  });
}

std::string describe_difference(const ParityRecord& parity) {
  std::string text = "DIFFERENT from " + parity.reference;
  if (parity.first_different_step)
    text += " at step " + std::to_string(*parity.first_different_step);
  if (!parity.first_different_tensor.empty()) text += ", tensor " + parity.first_different_tensor;
  return text;
}

// Returns the verdict on a point without usable figures; absent for other points.
std::optional<Verdict> judge_validity(const PointRecord& point) {
  if (point.status == PointStatus::kSkipped) {
    return Verdict{VerdictKind::kFailed, "SKIPPED: " + point.reason};
  }
  if (point.status == PointStatus::kRefused) {
    return Verdict{VerdictKind::kFailed, "refused: " + point.reason};
  }
  if (point.status != PointStatus::kOk) {
    return Verdict{VerdictKind::kFailed, "FAILED: " + std::string(to_string(point.status)) +
                                             (point.reason.empty() ? "" : ", " + point.reason)};
  }
  if (point.parity) {
    const ParityRecord& parity = *point.parity;
    if (has_other_bits(parity) && is_exact(point)) {
      return Verdict{VerdictKind::kDifferent, describe_difference(parity)};
    }
    if (parity.every_parameter_has_gradient == false) {
      return Verdict{VerdictKind::kDifferent, "parity proves nothing: parameter " +
                                                  parity.first_parameter_without_gradient +
                                                  " got no gradient"};
    }
  }
  if (const auto problem = unplanned_counts(point); problem && !problem->empty()) {
    return Verdict{VerdictKind::kMiscounted, "WRONG COUNTS: " + *problem};
  }
  return std::nullopt;
}

Verdict judge_lower(const PointRecord& point, const MemoryRecord& mine, const MemoryRecord& theirs,
                    const PointRecord* full) {
  const MemoryRecord* full_memory = measured_memory(full);
  if (full != &point && full_memory != nullptr && recomputes_as_much(point, *full) &&
      *mine.peak_allocated >= *full_memory->peak_allocated) {
    const Bytes more = *mine.peak_allocated - *full_memory->peak_allocated;
    return {VerdictKind::kNothingAgainstFull,
            more.count == 0
                ? "saves nothing compared with full: it recomputes as many ops, and its peak is "
                  "the same"
                : "saves nothing compared with full: it recomputes as many ops, and its peak is " +
                      format_percent(share(more, *full_memory->peak_allocated)) + " higher"};
  }
  const Bytes less = *theirs.peak_allocated - *mine.peak_allocated;
  Verdict verdict{
      VerdictKind::kLowersPeak,
      "lowers the peak by " + format_percent(share(less, *theirs.peak_allocated)) + price(point)};
  if (is_bound(mine)) verdict.text += "; no policy can go lower: the peak is " + held_there(mine);
  return verdict;
}

Verdict judge_peak(const PointRecord& point, const MemoryRecord& mine, const MemoryRecord& theirs,
                   const PointRecord* full) {
  if (*mine.peak_allocated < *theirs.peak_allocated) return judge_lower(point, mine, theirs, full);
  if (*mine.peak_allocated > *theirs.peak_allocated) {
    const Bytes more = *mine.peak_allocated - *theirs.peak_allocated;
    return {VerdictKind::kRaisesPeak, "raises the peak by " +
                                          format_percent(share(more, *theirs.peak_allocated)) +
                                          price(point) + "; the peak is " + held_there(mine)};
  }
  if (is_bound(theirs)) {
    return {VerdictKind::kCannotLower, "cannot lower this peak: it is " + held_there(theirs)};
  }
  return {VerdictKind::kSavesNothing,
          "saves nothing: the same peak" + price(point) + "; the peak is " + held_there(mine)};
}

}  // namespace

Bytes out_of_reach(const MemoryRecord& memory) {
  const Bytes peak = memory.peak_allocated.value_or(Bytes{});
  if (memory.peak_phase == Phase::kOptimizer) return peak;
  return peak - amount_of(memory.holders_at_peak, Holder::kSavedActivations) -
         amount_of(memory.holders_at_peak, Holder::kRecomputeTransient);
}

std::string describe_place(const MemoryRecord& memory) {
  if (!memory.peak_phase) return "an unknown phase";
  const std::string phase(to_string(*memory.peak_phase));
  return "the " + phase + (memory.peak_scope.empty() ? "" : " of " + memory.peak_scope);
}

std::string describe_holders(const MemoryRecord& memory) {
  return describe_holders(memory.holders_at_peak, memory.peak_allocated.value_or(Bytes{}));
}

std::string describe_holders(const HeldBytes& held, Bytes peak) {
  std::vector<std::pair<Holder, Bytes>> holders(held.begin(), held.end());
  std::stable_sort(holders.begin(), holders.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  Bytes explained;
  for (const auto& [holder, bytes] : holders) {
    if (bytes.count == 0 || share(explained, peak) >= kMaxShareOfPeak) break;
    text += text.empty() ? "" : ", ";
    // All other bytes are called "temporaries": the batch, the logits and the results that backward
    // does not need.
    const bool is_other = holder == Holder::kOther;
    text += is_other ? "temporaries" : as_words(to_string(holder));
    text += " " + format_percent(share(bytes, peak));
    explained += bytes;
  }
  return text;
}

Verdict judge_point(const PointRecord& point, const PointRecord* none, const PointRecord* full) {
  if (std::optional<Verdict> invalid = judge_validity(point)) return *std::move(invalid);
  const MemoryRecord* mine = measured_memory(&point);
  if (&point == none) {
    return {VerdictKind::kReference,
            mine == nullptr ? "the reference" : "the reference; its peak is " + held_there(*mine)};
  }
  if (none == nullptr) {
    return {VerdictKind::kNoReference,
            "nothing to compare with: this report has no point of policy none"};
  }
  if (none->status != PointStatus::kOk) {
    return {VerdictKind::kFits, "finishes, although policy none does not (" +
                                    std::string(to_string(none->status)) + ")"};
  }
  if (point.effect && point.effect->same_as == "none") {
    return {VerdictKind::kNoEffect,
            std::string("changes nothing: its plan equals the plan of none") +
                (point.effect->intended ? ", as intended" : "")};
  }
  const MemoryRecord* theirs = measured_memory(none);
  if (mine == nullptr || theirs == nullptr) {
    return {VerdictKind::kNoReference, "peaks were not measured"};
  }
  Verdict verdict = judge_peak(point, *mine, *theirs, full);
  if (!is_exact(point)) {
    verdict.text += "; not exact: the plan keeps values in " + point.effect->inexact_store;
  }
  return verdict;
}

}  // namespace rematch
