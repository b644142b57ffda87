// Small networks with collectives, as tensor, sequence, expert and data parallel models have them,
// on the group of the given name.
#pragma once

#include <string>
#include <vector>

#include "tests/support/networks.h"

namespace rematch::testing {

std::vector<NamedNetwork> collective_networks(const std::string& group);

}  // namespace rematch::testing
