// The settings of a run: the user's request, and the settings that depend on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "harness/measure/machine_memory.h"
#include "harness/run/children/child_point.h"
#include "harness/run/run_request.h"
#include "policies/base/rejected.h"

namespace rematch {

struct RunSettings {
  RunRequest request;

  std::string attention = "flash";          // backend of the exact passes
  bool libtorch_chooses_attention = false;  // used only for timing on CUDA
  std::string allocator;                    // if empty, the device's default allocator
  int threads = 1;
  // Predicted sizes are rounded up to a multiple of this number, like the sizes of the device's
  // allocator: see memory.h.
  std::int64_t round = 1;
  ChildRule children;
  // Points with a larger predicted peak are skipped, because the system may kill unrelated
  // processes when memory runs out.
  std::optional<AvailableMemory> limit;
  std::string how_to_lift_limit;  // text appended to the reason of a skip, such as "--force
                                  // measures it anyway"
  // Folder of finished points, from which a killed run can resume. If empty, no points are kept.
  std::string points_folder;
};

// Chooses the device's allocator, its rounding and the attention backend. Leaves `threads` at 1.
// Returns Rejected if the device, the requested allocator or the requested backend is not
// available.
std::variant<RunSettings, Rejected> settings_here(RunRequest request);

// The attention kernel of a model's steps.
struct AttentionChoice {
  std::string backend;            // backend of the exact passes
  bool libtorch_chooses = false;  // true if LibTorch chooses the backend of timed steps
};

// Chooses the backend that `asked_for` names. If `asked_for` is empty, chooses the device's first
// backend for exact passes, and on CUDA leaves the backend of timed steps to LibTorch. Returns
// Rejected if the device has no such backend for this dtype.
std::variant<AttentionChoice, Rejected> choose_attention(const std::string& asked_for,
                                                         const std::string& device,
                                                         const std::string& dtype);

}  // namespace rematch
