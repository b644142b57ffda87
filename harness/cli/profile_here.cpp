#include "harness/cli/profile_here.h"

namespace rematch {

bool is_measured_device(const std::string& device) {
  return device == "cpu" || device == "cuda" || device == "cuda-dry" || device.starts_with("cuda:");
}

}  // namespace rematch
