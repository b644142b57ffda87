// rematch profile: op times of this machine. Without LibTorch, without_libtorch.cpp defines it.
#pragma once

#include <string>

#include "models/preset/preset.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError, in one line, unless this build and its driver can measure `device` here.
// `command` is what the user typed, such as "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // LibTorch chooses the number if this is 0
  int num_steps = 0;
  bool force = false;     // whether to run even if the predicted peak exceeds the machine's memory
  std::string attention;  // see run's --attention, whose default is used if this is empty
  bool deterministic_times = false;  // see run's flag of the same name
};

// Measures a profile on this machine. `trace` is the model's. Throws UsageError, before anything
// runs, if a step that keeps everything does not fit into memory.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

// Returns whether rematch measures on this device ("cpu", "cuda"). All other devices are data
// sheets.
inline bool is_measured_device(const std::string& device) {
  return device == "cpu" || device == "cuda" || device == "cuda-dry" || device.starts_with("cuda:");
}

}  // namespace rematch
