// --device cuda-dry: the command goes on as the program of the same parts that is linked to the dry
// CUDA device.
#pragma once

#include <string>
#include <vector>

namespace rematch {

// Returns if this is that program already, and does not return otherwise. `card`: h100 where it is
// empty. UsageError: an unknown card, or a build without the dry device.
void continue_on_dry_device(const std::vector<std::string>& command, const std::string& card);

// UsageError unless `card` is empty or the device is dry.
void require_dry_for_card(const std::string& device, const std::string& card);

}  // namespace rematch
