// Shared code of the subcommands that run points: the environment of child processes, the
// provenance of a report, and the exit code for its points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/run/run_request.h"
#include "policies/search/front/front.h"
#include "reports/record/report.h"

namespace rematch {

// Returns what `rematch search --measure` measures: the `chosen` points of `front` and its
// baselines, on the device of the front's times. Throws UsageError.
RunRequest request_of(const SearchFlags& flags, const std::string& device, const Front& front,
                      const std::vector<std::size_t>& chosen);

// Sets variables for child processes, so that their waiting threads do not spin. On a machine with
// other work, spinning threads slow a step down several times (seen: 0.35 s became 1 to 10 s). Call
// this before LibTorch runs.
void prepare_children();

Provenance make_provenance(const std::vector<std::string>& command, const std::string& device,
                           const std::string& allocator, std::uint64_t seed);

// Returns the folder in which a run keeps its finished points. The folder is next to the report.
// Empty if there is no report.
std::string points_folder_of(const std::string& output);

// Returns kOk, kSomePointsFailed, or kGateFailed if bits differ from the reference's.
ExitCode exit_code_of(const Report& report);

// Writes the report of an interrupted run to `output`, so that it can be merged and compared. Keeps
// an existing report that has at least as many points. If `output` is empty, writes nothing.
// Returns text to append to the status line, or "".
std::string keep_partial(const std::string& output, const Report& partial);

}  // namespace rematch
