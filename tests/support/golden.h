// Approved outputs under tests/golden: REMATCH_APPROVE=1 rewrites them, and the difference is read
// in review.
#pragma once

#include <string>

namespace rematch::testing {

// Checks that `text` is what tests/golden/<name> holds. Of a difference the first line is shown.
void check_golden(const std::string& name, const std::string& text);

// What tests/golden/<name> holds; empty if there is no such file.
std::string read_golden(const std::string& name);

}  // namespace rematch::testing
