// Shared by all subcommands that run points: the environment of child processes, where a
// report comes from, and the exit code for its points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "reports/record/report.h"

namespace rematch {

// Variables that children inherit; before anything of LibTorch runs.
void prepare_children();

// For what is measured in this very process. OpenMP reads how idle threads wait when it is loaded,
// which is before main: so the program starts once more, unless the variable is set already.
// `arguments` is argv.
void start_again_with_sleeping_threads(char** arguments);

// As typed, quoted where a shell needs it; `command` is argv.
std::string shell_line(const std::vector<std::string>& command);

Provenance make_provenance(const std::vector<std::string>& command, const std::string& device,
                           const std::string& allocator, std::uint64_t seed);

// The folder beside a report that keeps finished points; empty if there is no report.
std::string points_folder_of(const std::string& output);

// Ok, some points failed, or bits differ from the reference's.
ExitCode exit_code_of(const Report& report);

// The report of an interrupted run.

// Writes it where the whole report would be, so that it can be merged and compared; a report of as
// many points that is there stays. `output` empty: nothing is written. Returns what is to be said
// of it behind a line, empty for nothing.
std::string keep_partial(const std::string& output, const Report& partial);

}  // namespace rematch
