// Small networks that run collectives on a named group, as tensor, sequence, expert and data
// parallel models do.
#pragma once

#include <string>
#include <vector>

#include "tests/support/networks.h"

namespace rematch::testing {

std::vector<NamedNetwork> collective_networks(const std::string& group);

}  // namespace rematch::testing
