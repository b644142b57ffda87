// A profile measured on this machine: what `profile` and `search` run where no data sheet is named.
#pragma once

#include <string>

#include "models/preset/preset.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Devices that are measured, not computed: "cpu", "cuda".
bool is_measured_device(const std::string& device);

// UsageError in one line unless `device` can be measured here: this build, its driver, a device.
// `command` is what the user typed: "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // 0: LibTorch's own choice
  int num_steps = 0;
  bool force = false;  // also what the machine has no memory for
};

// `trace` is the model's. Throws UsageError, before anything runs, if a step that keeps everything
// does not fit into the memory that there is.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

}  // namespace rematch
