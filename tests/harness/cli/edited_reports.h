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

// Sets the step time of each round, in microseconds, and the median of these times.
void set_rounds(Json& point, const std::vector<std::int64_t>& microseconds);

// `text` is a hash or the bits of a number. Changes its last digit.
void change_last_digit(Json& text);

}  // namespace rematch::testing
