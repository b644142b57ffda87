// Which worker measures which comparison: the protocol is in README.md. Deciding code over small
// interfaces; tests interleave its steps with those of others.
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
  int generation = 0;  // of the newest claim when it was judged; 0: there was none
  std::optional<ClaimHolder> holder;
  int num_beats = 0;
  std::string reason;
};

// How this process sees time and other processes. `now` is of a clock that only goes forward, and
// is compared with itself alone.
struct Observer {
  std::function<std::chrono::nanoseconds()> now;
  std::function<bool(const ClaimHolder&)> is_gone;  // surely; false where that cannot be known
};

// The same for all workers of a sweep.
struct ClaimRule {
  std::chrono::milliseconds stale_after = std::chrono::seconds(180);
  // Starts of a comparison that told no end: it takes its workers down, so it is given up.
  int most_lost_starts = 10;

  // Six beats may be missed; attributes of files on NFS are up to a minute old.
  std::chrono::milliseconds beat_every() const { return stale_after / 6; }
};

class Claims;

// One comparison in this worker's hands, as generation `generation` of it.
class HeldClaim {
 public:
  const std::string& comparison() const { return comparison_; }
  int generation() const { return generation_; }

  // Says that its worker lives. False: it could not be written, for a while or for good.
  bool beat();
  // Another worker took it, since this one was silent for too long.
  bool is_superseded() const;

  // The finished report of this generation becomes the comparison's, unless there is one. Throws
  // FileError; it may be tried again.
  void finish(const std::string& report_path);
  // The same for an end without a report: free, failed, skipped.
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
  // `comparisons`: their ids. Claims are made in the name of `self`.
  Claims(SweepFolder& folder, std::vector<std::string> comparisons, ClaimHolder self,
         Observer observer, ClaimRule rule);

  // Judges all of them. Throws FileError, FormatError for a claim that is none, or another plan's.
  void look();
  // Stays where it is; looks renew it.
  const Judgement& of(const std::string& comparison) const { return judged_.at(comparison); }

  // The state that this worker has just given a comparison, known without another look.
  void note(const std::string& comparison, ClaimState state) {
    judged_.at(comparison).state = state;
  }

  // The next generation of a comparison that look() found free, stale or skipped. Nothing: another
  // worker was quicker, or it is done, or given up. Throws FileError.
  std::optional<HeldClaim> take(const std::string& comparison);
  // The same for one that failed, however often its workers vanished.
  std::optional<HeldClaim> retry(const std::string& comparison);

 private:
  // When this process first saw a claim say what it says.
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
  std::map<std::string, Seen> seen_;  // by claim
};

// "ID.json"
std::string report_name(const std::string& comparison);

}  // namespace rematch
