// The functions of commands that need LibTorch. Programs with LibTorch are linked with the other
// sources of this folder. Programs without LibTorch are linked with without_libtorch.cpp, which
// rejects every call, including record_trace(), with a one-line error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"

namespace rematch {

bool has_libtorch();

// Runs the hidden subcommand of child processes. It uses no parser, so that children start sooner.
// `command` is argv. Returns false if `command` is not the hidden subcommand.
bool run_as_child(const std::vector<std::string>& command);

// Call this first in a command that times ops in its own process. OpenMP is loaded before main(),
// and reads at that time how idle threads wait. So the program restarts itself with OMP_WAIT_POLICY
// set, unless the variable is already set. `arguments` is argv.
void prepare_timing(char** arguments);

// Returns the memory of the device. Absent if the memory is unknown on this machine.
std::optional<AvailableMemory> memory_limit(const std::string& device);

// Returns the GPUs of this machine that this program can use, under their driver's names.
std::vector<std::string> cards_here();

}  // namespace rematch
