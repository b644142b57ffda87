// A report of a small run, and functions that edit it, as a cheating person or a broken disk or
// build would. Used by tests of gate and compare.
#pragma once

#include <string>
#include <vector>

#include "policies/base/json.h"

namespace rematch::testing {

// measured_report() returns a report of policies `none` and `full`. Each policy runs four times,
// with four steps and four rounds. Policy `none` keeps 100 MiB. Policy `full` keeps 99 MiB and
// recomputes 8 attentions per step. With noise, the losses of a policy's runs differ by at most
// 0.002.
enum class RunNoise : std::uint8_t { kNone, kSome };
Json measured_report(RunNoise noise);

Json& point_of(Json& report, const std::string& policy);
Json& full_of(Json& report);

// Updates the point's key after an edit of the point's identity.
void make_key(Json& point);

void set_loss(Json& step, float loss);

// Sets the step times of the rounds, one per round, in microseconds, and their median.
void set_rounds(Json& point, const std::vector<std::int64_t>& microseconds);

// Changes the last digit of `text`, which is the bits of a number, or a hash.
void change_last_digit(Json& text);

}  // namespace rematch::testing
