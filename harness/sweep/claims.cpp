#include "harness/sweep/claims.h"

#include <algorithm>
#include <utility>

#include "policies/base/file.h"
#include "policies/base/text.h"

namespace rematch {
bool HeldClaim::beat() {
  try {
    folder_->append_to_claim(name(), beat_line());
  } catch (const FileError&) {
    return false;  // not fatal: at worst, another worker measures the comparison again
  }
  return true;
}

bool HeldClaim::is_superseded() const {
  try {
    return folder_->has_claim(claim_name(comparison_, generation_ + 1));
  } catch (const FileError&) {
    // the folder is unreadable, so assume that no other worker has taken over
    return false;
  }
}

void HeldClaim::finish(const std::string& report_path) {
  folder_->link_report(report_path, report_name(comparison_));
  try {
    end(ClaimState::kDone);
  } catch (const FileError&) {  // the report alone shows that the comparison is done
  }
}

void HeldClaim::end(ClaimState end, const std::string& reason) {
  folder_->append_to_claim(name(), end_line(end, reason));
}

Claims::Claims(SweepFolder& folder, std::vector<std::string> comparisons, ClaimHolder self,
               Observer observer, ClaimRule rule)
    : folder_(folder),
      comparisons_(std::move(comparisons)),
      self_(std::move(self)),
      observer_(std::move(observer)),
      rule_(rule) {
  for (const std::string& comparison : comparisons_) judged_[comparison] = {};
}

void Claims::look() {
  std::map<std::string, int> newest;
  for (const std::string& name : folder_.claims()) {
    const auto claim = parse_claim_name(name);
    if (!claim) continue;
    int& generation = newest[claim->comparison];
    generation = std::max(generation, claim->generation);
  }
  const std::vector<std::string> names = folder_.reports();
  const std::set<std::string> reports(names.begin(), names.end());
  for (const std::string& comparison : comparisons_) {
    Judgement& judged = judged_.at(comparison);
    if (judged.state == ClaimState::kDone) continue;
    const auto found = newest.find(comparison);
    const int generation = found == newest.end() ? 0 : found->second;
    const bool has_report = reports.count(report_name(comparison)) != 0;
    judged = has_report ? Judgement{ClaimState::kDone, generation, {}, 0, {}}
                        : judge(comparison, generation);
  }
}

Judgement Claims::judge(const std::string& comparison, int newest) {
  Judgement judged;
  judged.generation = newest;
  if (newest == 0) return judged;
  const std::string name = claim_name(comparison, newest);
  const std::optional<std::string> text = folder_.read_claim(name);
  if (!text) {  // this file system may show the claim late; the next look() will find it
    judged.state = ClaimState::kUnsure;
    return judged;
  }
  ClaimText claim = parse_claim(*text, "claims/" + name);
  if (claim.holder && claim.holder->plan != self_.plan) {
    throw FormatError("claims/" + name + ": belongs to plan " + in_quotes(claim.holder->plan) +
                      ", not to this folder's " + in_quotes(self_.plan) +
                      "; give each plan its own folder");
  }
  judged.state = state_of(name, *text, claim);
  judged.holder = std::move(claim.holder);
  judged.num_beats = claim.num_beats;
  judged.reason = std::move(claim.reason);
  return judged;
}

ClaimState Claims::state_of(const std::string& name, const std::string& text,
                            const ClaimText& claim) {
  if (claim.end) return *claim.end;
  if (claim.holder && (is_own_earlier_start(*claim.holder) || observer_.is_gone(*claim.holder))) {
    return ClaimState::kStale;
  }
  const std::chrono::nanoseconds now = observer_.now();
  const auto [seen, is_new] = seen_.try_emplace(name, Seen{text, now, false});
  if (is_new) return ClaimState::kUnsure;
  if (seen->second.text != text) {
    seen->second = {text, now, true};
    return ClaimState::kHeld;
  }
  if (now - seen->second.since >= rule_.stale_after) return ClaimState::kStale;
  const bool beats = seen->second.has_changed && now - seen->second.since < rule_.stale_after / 2;
  return beats ? ClaimState::kHeld : ClaimState::kUnsure;
}

bool Claims::is_own_earlier_start(const ClaimHolder& holder) const {
  return !self_.task.empty() && holder.task == self_.task && holder.task_start < self_.task_start;
}

std::optional<HeldClaim> Claims::take(const std::string& comparison) {
  Judgement& judged = judged_.at(comparison);
  const bool may_take = judged.state == ClaimState::kFree || judged.state == ClaimState::kStale ||
                        judged.state == ClaimState::kSkipped;
  if (!may_take) return std::nullopt;
  std::optional<HeldClaim> claim = make_next(comparison, judged);
  if (!claim) return std::nullopt;
  const int num_lost = num_lost_starts(comparison, judged.generation);
  if (num_lost < rule_.most_lost_starts) return claim;
  claim->end(ClaimState::kFailed,
             "given up after " + std::to_string(num_lost) +
                 " starts: every worker died, and this comparison may be the cause");
  return std::nullopt;
}

std::optional<HeldClaim> Claims::retry(const std::string& comparison) {
  Judgement& judged = judged_.at(comparison);
  if (judged.state != ClaimState::kFailed) return std::nullopt;
  return make_next(comparison, judged);
}

// Creates the comparison's next claim, one generation after `judged`. Absent if another worker
// created that claim first, or if the comparison is done.
std::optional<HeldClaim> Claims::make_next(const std::string& comparison, Judgement& judged) {
  const int generation = judged.generation + 1;
  if (!folder_.create_claim(claim_name(comparison, generation), holder_line(self_))) {
    return std::nullopt;
  }
  HeldClaim claim(folder_, comparison, generation);
  if (!folder_.has_report(report_name(comparison))) return claim;
  claim.end(ClaimState::kDone);
  judged.state = ClaimState::kDone;
  return std::nullopt;
}

int Claims::num_lost_starts(const std::string& comparison, int newest) {
  if (newest < rule_.most_lost_starts) return 0;
  int num_lost = 0;
  for (int generation = 1; generation <= newest; ++generation) {
    const std::string name = claim_name(comparison, generation);
    const auto text = folder_.read_claim(name);
    if (!text || parse_claim(*text, "claims/" + name).end == std::nullopt) ++num_lost;
  }
  return num_lost;
}

std::string report_name(const std::string& comparison) { return comparison + ".json"; }

}  // namespace rematch
