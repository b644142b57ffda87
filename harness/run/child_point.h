// One pass of one point in a child process: asks, waits, and turns however it ends into a record.
#pragma once

#include <chrono>
#include <string>

#include "harness/run/process.h"
#include "harness/run/request.h"
#include "reports/record/point.h"

namespace rematch {

// Runs this program's hidden subcommand `point`. Throws Interrupted after a signal. A child that
// leaves no result is a crash, an oom (killed from outside) or a timeout, with what it said last.
PointRecord measure_in_child(const PointRequest& request, std::chrono::milliseconds limit);

// What a child's end says of its point where it left no result. Pure.
void describe_end(const ChildResult& result, std::chrono::milliseconds limit, PointRecord& record);

// The other side: reads the request, measures, writes the result. For the hidden subcommand.
void answer_request(const std::string& request_file, const std::string& result_file);

}  // namespace rematch
