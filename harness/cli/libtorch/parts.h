// The parts of commands that need LibTorch. CMake compiles one of two sets of sources: the others
// of this folder, or without_libtorch.cpp, which refuses in one line. So are those of
// profile_here.h, search_measure.h and record_trace().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/sweep/child_measurer.h"

namespace rematch {

struct PredictFlags;
struct RunFlags;

bool has_libtorch();

// The hidden subcommand of child processes: no parser, so that they start sooner. `command` is
// argv.
bool is_child(const std::vector<std::string>& command);
ExitCode answer_as_child(const std::vector<std::string>& command);

// Before anything else of a command that times ops in this very process. `arguments` is argv.
void prepare_timing(char** arguments);

ExitCode run_points(const RunFlags& flags, const std::vector<std::string>& command);
ExitCode predict_model(const PredictFlags& flags);
ExitCode doctor(bool json);

// The memory that the device has; nothing if that is not known here.
std::optional<MemoryLimit> memory_limit(const std::string& device);

}  // namespace rematch
