// The text of a claim. The text says who made the claim, then has one line for each heartbeat, then
// says how the claim ended. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rematch {

// A worker, as its claims describe it to other workers.
struct ClaimHolder {
  std::string plan;  // id of the plan on which the worker works
  std::string host;  // host name, shown to users
  // Ids of the machine's boot and of the process namespace. Process ids are comparable only if this
  // text is equal.
  std::string machine;
  std::int64_t pid = 0;
  std::int64_t born =
      0;  // start of the process in the system's ticks; needed because process ids are reused
  std::string task;    // task of a Slurm job array, such as "123_4"; empty outside of Slurm
  int task_start = 0;  // how often Slurm has restarted that task
  bool operator==(const ClaimHolder&) const = default;
};

enum class ClaimState : std::uint8_t {
  kFree,     // no worker holds the comparison, because none took it or its worker released it
  kHeld,     // this process has seen heartbeats of the claim's worker
  kUnsure,   // too early to decide whether the claim's worker is alive
  kStale,    // the claim's worker was silent for too long, or is known to be gone
  kDone,     // the comparison's report exists
  kFailed,   // the comparison ended without a report
  kSkipped,  // the comparison did not fit on the card where it was tried
};

struct ClaimText {
  std::optional<ClaimHolder> holder;  // absent if the holder's line is incomplete so far
  int num_beats = 0;
  std::optional<ClaimState>
      end;             // free, done, failed or skipped; absent if the claim has not ended
  std::string reason;  // why the comparison failed or was skipped
};

// The next three functions return whole lines, each with its newline.
std::string holder_line(const ClaimHolder& holder);
std::string beat_line();
std::string end_line(ClaimState end, const std::string& reason);

// Ignores a line without its newline. Throws FormatError, starting with `name`, if the first line
// does not belong to a claim.
ClaimText parse_claim(std::string_view text, const std::string& name);

// Returns a claim's file name, "ID.gN". N is the generation: it numbers the claims of one
// comparison from 1.
std::string claim_name(const std::string& comparison, int generation);
struct ClaimName {
  std::string comparison;
  int generation = 0;
};
std::optional<ClaimName> parse_claim_name(std::string_view name);

}  // namespace rematch
