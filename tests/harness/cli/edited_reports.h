// A report of a small run, and ways to edit it. The edits imitate a person who wants a command to
// pass, or a broken disk or build. Tests of gate and compare use them.
#pragma once

#include <string>
#include <vector>

#include "policies/base/json.h"

namespace rematch::testing {

// Two policies, none and full, with four steps in four rounds, each run four times. Policy `none`
// keeps 100 MiB. Policy `full` keeps 99 MiB and recomputes 8 attentions per step. With noise, the
// runs of one policy differ by at most 0.002.
enum class RunNoise : std::uint8_t { kNone, kSome };
Json measured_report(RunNoise noise);

Json& point_of(Json& report, const std::string& policy);
Json& full_of(Json& report);

// Makes the point's key match the point's identity again after an edit.
void make_key(Json& point);

void set_loss(Json& step, float loss);

// Sets one sample per round, in microseconds, and the matching median.
void set_rounds(Json& point, const std::vector<std::int64_t>& microseconds);

// Changes the last digit of a number's bits, or of a hash.
void change_last_digit(Json& text);

}  // namespace rematch::testing
