// Approved outputs under tests/golden: REMATCH_APPROVE=1 rewrites them, and the difference is read
// in review.
#pragma once

#include <string>

namespace rematch::testing {

// Checks that `text` is what tests/golden/<name> holds.
void check_golden(const std::string& name, const std::string& text);

}  // namespace rematch::testing
