// The text of a claim: who made it, then one line for each heartbeat, then how it ended. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rematch {

// A worker as other workers know it.
struct ClaimHolder {
  std::string plan;  // id of the plan that it works on
  std::string host;  // for people
  // Boot and process namespace; process ids are comparable only if this is equal.
  std::string machine;
  std::int64_t pid = 0;
  std::int64_t born = 0;  // start of the process in the system's ticks, because ids are reused
  std::string task;       // task of a Slurm job array: "123_4"; empty: none
  int task_start = 0;     // how often Slurm has restarted that task
  bool operator==(const ClaimHolder&) const = default;
};

enum class ClaimState : std::uint8_t {
  kFree,     // nobody's, or given back
  kHeld,     // its worker was seen to write heartbeats
  kUnsure,   // silent, but not observed for long enough
  kStale,    // silent for too long, or its process is gone
  kDone,     // its report exists
  kFailed,   // it ended without a report
  kSkipped,  // it did not fit where it was tried
};

struct ClaimText {
  std::optional<ClaimHolder> holder;  // absent: its line is incomplete so far
  int num_beats = 0;
  std::optional<ClaimState> end;  // free, done, failed or skipped; absent: it has not ended
  std::string reason;             // why it failed or was skipped
};

// These return whole lines, each with a final "\n".
std::string holder_line(const ClaimHolder& holder);
std::string beat_line();
std::string end_line(ClaimState end, const std::string& reason);

// Ignores a line without its newline. Throws FormatError, starting with `name`, if the first line
// does not belong to a claim.
ClaimText parse_claim(std::string_view text, const std::string& name);

// "ID.gN", with generations from 1.
std::string claim_name(const std::string& comparison, int generation);
struct ClaimName {
  std::string comparison;
  int generation = 0;
};
std::optional<ClaimName> parse_claim_name(std::string_view name);

}  // namespace rematch
