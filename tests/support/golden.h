// Approved outputs under tests/golden. REMATCH_APPROVE=1 rewrites them; the diff is read in review.
#pragma once

#include <string>

namespace rematch::testing {

// Checks that `text` equals the content of tests/golden/<name>. Shows the first line that differs.
void check_golden(const std::string& name, const std::string& text);

// Returns the content of tests/golden/<name>. Returns an empty string if the file does not exist.
std::string read_golden(const std::string& name);

}  // namespace rematch::testing
