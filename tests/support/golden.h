// Compares outputs with approved files under tests/golden, which REMATCH_APPROVE=1 rewrites. Writes
// pages for the browser test.
#pragma once

#include <string>

namespace rematch::testing {

// Checks that `text` equals the content of tests/golden/<name>. Shows the first line that differs.
void check_golden(const std::string& name, const std::string& text);

// Returns the content of tests/golden/<name>. Returns an empty string if the file does not exist.
std::string read_golden(const std::string& name);

// Writes the page into the folder that REMATCH_PAGES names, for scripts/test_page. Does nothing
// without that variable.
void keep_page(const std::string& name, const std::string& page);

}  // namespace rematch::testing
