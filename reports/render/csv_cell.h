// Cells of comma-separated values, as RFC 4180 and spreadsheets want them.
#pragma once

#include <string>

namespace rematch {

// Quoted where it must be. Text that a spreadsheet would take for a formula gets an apostrophe in
// front.
std::string csv_text(const std::string& text);

// The shortest text that reads back as the same number.
std::string csv_number(double value);

}  // namespace rematch
