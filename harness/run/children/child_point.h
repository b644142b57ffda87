// One pass of one point in a child process: asks, waits, and turns however it ends into a record.
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

// How long a child may take, and how often one is started again whose end says nothing of its
// point.
struct ChildRule {
  std::chrono::milliseconds limit{std::chrono::minutes(10)};
  int most_retries = 1;
  RankProcesses* ranks = nullptr;  // of points on several ranks; null: all are started from here
};

// Told before a child is started again: why.
using SayRetry = std::function<void(const std::string& why)>;

// Runs this program's hidden subcommand `point`; of a point on several ranks once for each, and
// their records become one. Throws Interrupted after a signal. A child that
// leaves no result is a crash, an oom (killed while memory was short) or a timeout, with what it
// said last.
PointRecord measure_in_child(const PointRequest& request, const ChildRule& rule,
                             const SayRetry& say_retry);

// Asks one child to time several points by turns. Returns a record for each arm of the request. The
// time limit of `rule` is multiplied by the number of arms. Points must not be on several ranks.
std::vector<PointRecord> measure_turns_in_child(const TurnsRequest& request, const ChildRule& rule,
                                                const SayRetry& say_retry);

// Was it killed by somebody while memory was free, or did it take too long: neither need happen
// again, and one such end would cost the whole comparison its reference. Pure.
bool deserves_retry(const ChildResult& result);

// The status of a point whose child left no result, after so many attempts. Pure.
void describe_end(const ChildResult& result, std::chrono::milliseconds limit, int attempts,
                  PointRecord& record);

// "full.pickle" becomes "full.rank-1-of-2.pickle"; a rank without others keeps the name.
std::string file_of_rank(const std::string& file, int rank, int world);

// The other side: reads the request, measures, writes the result. For the hidden subcommand.
void answer_request(const std::string& request_file, const std::string& result_file);

}  // namespace rematch
