// Runs one pass of one point in a child process. Returns a record of the point, even if the child
// crashes.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/process/process.h"
#include "harness/run/children/request.h"
#include "reports/record/point.h"

namespace rematch {

class RankProcesses;
struct TurnsRequest;

// The time limit of a child process, and the number of retries after a failure that may be
// unrelated to the point.
struct ChildRule {
  std::chrono::milliseconds limit{std::chrono::minutes(10)};
  int most_retries = 1;
  // Runs points that use several ranks. If null, this process starts all ranks.
  RankProcesses* ranks = nullptr;
};

// Called with the reason before a child is started again.
using SayRetry = std::function<void(const std::string& why)>;

// Runs this program's hidden subcommand `point`. A point on several ranks runs it once per rank,
// and the ranks' records are merged into one. Throws Interrupted after a signal. If a child ends
// without a result, the record's status is crash, timeout, or oom (killed while memory was short),
// and its reason contains the child's last output.
PointRecord measure_in_child(const PointRequest& request, const ChildRule& rule,
                             const SayRetry& say_retry);

// Asks one child to time several points alternately. Returns a record for each arm of the request.
// The time limit of `rule` is multiplied by the number of arms. Each point must use a single rank.
std::vector<PointRecord> measure_turns_in_child(const TurnsRequest& request, const ChildRule& rule,
                                                const SayRetry& say_retry);

// Returns whether the child was killed while memory was free, or exceeded its time limit. Such
// failures may be unrelated to the point, so a retry can succeed. Pure.
bool deserves_retry(const ChildResult& result);

// Fills the status and reason of a point after `attempts` child processes that all ended without a
// result. `result` describes the last of them. Pure.
void describe_end(const ChildResult& result, std::chrono::milliseconds limit, int attempts,
                  PointRecord& record);

// Inserts the rank into a file name: "full.pickle" becomes "full.rank-1-of-2.pickle". With a single
// rank the name is unchanged.
std::string file_of_rank(const std::string& file, int rank, int world);

// Runs in the child, for the hidden subcommand: reads the request, measures, writes the result.
void answer_request(const std::string& request_file, const std::string& result_file);

}  // namespace rematch
