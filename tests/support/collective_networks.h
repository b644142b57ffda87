// Small networks with collectives on the group of the given name. The networks use collectives as
// tensor, sequence, expert and data parallel models do.
#pragma once

#include <string>
#include <vector>

#include "tests/support/networks.h"

namespace rematch::testing {

std::vector<NamedNetwork> collective_networks(const std::string& group);

}  // namespace rematch::testing
