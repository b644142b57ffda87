// The text of a claim: who made it, then a line for each beat, then how it ended. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rematch {

// A worker as other workers know it.
struct ClaimHolder {
  std::string plan;     // id of the plan that it works on
  std::string host;     // for people
  std::string machine;  // boot and process namespace: equal where process ids mean the same
  std::int64_t pid = 0;
  std::int64_t born = 0;  // when the process started, in the system's ticks: ids are used again
  std::string task;       // of a Slurm job array: "123_4"; empty: none
  int task_start = 0;     // how often Slurm has started that task again
  bool operator==(const ClaimHolder&) const = default;
};

enum class ClaimState : std::uint8_t {
  kFree,     // nobody's, or given back
  kHeld,     // seen to beat
  kUnsure,   // silent, but not looked at for long enough
  kStale,    // silent for too long, or its process is gone
  kDone,     // its report is there
  kFailed,   // it has an end that is no report
  kSkipped,  // it did not fit where it was tried
};

struct ClaimText {
  std::optional<ClaimHolder> holder;  // absent: its line is not whole yet
  int num_beats = 0;
  std::optional<ClaimState> end;  // free, done, failed or skipped; absent: it has not ended
  std::string reason;             // of what failed or was skipped
};

// Whole lines; "\n" at the end of each.
std::string holder_line(const ClaimHolder& holder);
std::string beat_line();
std::string end_line(ClaimState end, const std::string& reason);

// A line without its newline is not there yet. Throws FormatError, with `name` in front, where the
// first one is no claim's.
ClaimText parse_claim(std::string_view text, const std::string& name);

// "ID.gN", with generations from 1.
std::string claim_name(const std::string& comparison, int generation);
struct ClaimName {
  std::string comparison;
  int generation = 0;
};
std::optional<ClaimName> parse_claim_name(std::string_view name);

}  // namespace rematch
