// A front as lines and tables for a terminal or a pull request, and the sentences that its page
// shares with them.
#pragma once

#include <cstddef>
#include <string>

#include "policies/search/front_json.h"
#include "reports/render/grid.h"

namespace rematch {

// `file` is where the front is stored, for the commands that take its points; empty: nowhere.
std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const std::string& file);

// "llama3_8b, bfloat16, batch 1, 8192 tokens, AdamW, on h100 (74.5 GiB)", and which rank of how
// many.
std::string setting_words(const FrontRecord& record);

// The fastest point within what was asked for, or within the device's memory: its number, figures
// and what it keeps. That there is none, too; empty if no limit is known.
std::string lead_words(const FrontRecord& record);

// What the front is exact over, or what better plans may exist.
std::string exactness_of(const FrontRecord& record);

// Of a measured front: equal peaks, errors of the calibrated step times, the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

// "The knee, point 5: peak 41.6 GiB, step 785 ms". What it keeps stands in the file.
std::string knee_words(const Front& front);

// Empty if nothing was asked.
std::string answer_words(const FrontRecord& record);

}  // namespace rematch
