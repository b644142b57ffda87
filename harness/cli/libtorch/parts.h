// Functions that need LibTorch. Programs with LibTorch link the other sources of this folder.
// Programs without LibTorch link without_libtorch.cpp, where most of these functions throw
// UsageError.
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

// Call this first in a command that times ops in its own process. If OMP_WAIT_POLICY is not set,
// sets it and restarts the program, because OpenMP reads this variable before main(). `arguments`
// is argv.
void prepare_timing(char** arguments);

// Returns the memory of the device. Absent if the memory is unknown on this machine.
std::optional<AvailableMemory> memory_limit(const std::string& device);

// Returns the GPUs of this machine that this program can use, under their driver's names.
std::vector<std::string> cards_here();

}  // namespace rematch
