// Decides which worker measures which comparison; README.md describes the protocol. Uses files and
// clocks only through interfaces, so that tests can interleave the steps of several workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/sweep/claim_text.h"
#include "harness/sweep/sweep_folder.h"

namespace rematch {

struct Judgement {
  ClaimState state = ClaimState::kFree;
  // N in the name of the newest claim that was read, "ID.gN"; 0 if there was no claim
  int generation = 0;
  std::optional<ClaimHolder> holder;
  int num_beats = 0;
  std::string reason;
};

// Tells the time, and whether another process is gone. `now` is a monotonic clock, so its values
// can only be compared with each other.
struct Observer {
  std::function<std::chrono::nanoseconds()> now;
  std::function<bool(const ClaimHolder&)> is_gone;  // true only if the holder is certainly gone
};

// The rule by which a worker is considered dead. All workers of a sweep use the same rule.
struct ClaimRule {
  std::chrono::milliseconds stale_after = std::chrono::seconds(180);
  // A comparison is marked as failed after this many of its workers died, because the comparison
  // may be the cause.
  int most_lost_starts = 10;

  // A worker may miss six heartbeats before its claim is stale, because file attributes on NFS may
  // be a minute old.
  std::chrono::milliseconds beat_every() const { return stale_after / 6; }
};

class Claims;

// A comparison that this worker holds through its claim.
class HeldClaim {
 public:
  const std::string& comparison() const { return comparison_; }
  int generation() const { return generation_; }

  // Writes a heartbeat. Returns false if the write failed, temporarily or permanently.
  bool beat();
  // Returns whether another worker has taken the comparison, because this worker was silent for too
  // long.
  bool is_superseded() const;

  // Publishes this worker's finished report as the comparison's report, unless the comparison
  // already has a report. Throws FileError; the call may be repeated.
  void finish(const std::string& report_path);
  // Ends the claim without a report, as free, failed or skipped. Throws FileError; the call may be
  // repeated.
  void end(ClaimState end, const std::string& reason = {});

 private:
  friend class Claims;
  HeldClaim(SweepFolder& folder, std::string comparison, int generation)
      : folder_(&folder), comparison_(std::move(comparison)), generation_(generation) {}
  std::string name() const { return claim_name(comparison_, generation_); }

  SweepFolder* folder_;
  std::string comparison_;
  int generation_;
};

class Claims {
 public:
  // `comparisons` are the ids of the comparisons. Claims are made in the name of `self`.
  Claims(SweepFolder& folder, std::vector<std::string> comparisons, ClaimHolder self,
         Observer observer, ClaimRule rule);

  // Reads the claims of all comparisons and updates their states. Throws FileError. Throws
  // FormatError if a claim is malformed or belongs to another plan.
  void look();
  // Returns a reference that stays valid. look() updates the referenced judgement.
  const Judgement& of(const std::string& comparison) const { return judged_.at(comparison); }

  // Stores the state of a comparison that this worker itself has just changed, so that look() need
  // not read the folder again.
  void note(const std::string& comparison, ClaimState state) {
    judged_.at(comparison).state = state;
  }

  // Takes a comparison that look() found free, stale or skipped, by creating the comparison's next
  // claim. Absent if another worker was faster, or if the comparison is done or given up. Throws
  // FileError.
  std::optional<HeldClaim> take(const std::string& comparison);
  // Takes a failed comparison, even if many of its workers died. Returns nothing in the same cases
  // as take(), and throws the same errors.
  std::optional<HeldClaim> retry(const std::string& comparison);

 private:
  // The text of a claim, and the time at which this process first saw that text.
  struct Seen {
    std::string text;
    std::chrono::nanoseconds since{};
    bool has_changed = false;
  };

  Judgement judge(const std::string& comparison, int newest);
  std::optional<HeldClaim> make_next(const std::string& comparison, Judgement& judged);
  ClaimState state_of(const std::string& name, const std::string& text, const ClaimText& claim);
  bool is_own_earlier_start(const ClaimHolder& holder) const;
  int num_lost_starts(const std::string& comparison, int newest);

  SweepFolder& folder_;
  std::vector<std::string> comparisons_;
  ClaimHolder self_;
  Observer observer_;
  ClaimRule rule_;
  std::map<std::string, Judgement> judged_;
  std::map<std::string, Seen> seen_;  // by name of the claim
};

// "ID.json"
std::string report_name(const std::string& comparison);

}  // namespace rematch
