// A report of a small run and ways to edit it, as someone would who wants a command to pass, or a
// broken disk or build: what gate and compare are held to.
#pragma once

#include <string>
#include <vector>

#include "policies/base/json.h"

namespace rematch::testing {

// none and full, four steps in four rounds, each run four times. full keeps 99 MiB of none's 100
// and recomputes 8 attentions a step. With noise, the runs of one policy differ by 0.002 at most.
enum class RunNoise : std::uint8_t { kNone, kSome };
Json measured_report(RunNoise noise);

Json& point_of(Json& report, const std::string& policy);
Json& full_of(Json& report);

// Makes the point's key fit its identity again.
void make_key(Json& point);

void set_loss(Json& step, float loss);

// One sample a round, in microseconds, and the median to it.
void set_rounds(Json& point, const std::vector<std::int64_t>& microseconds);

// The last digit of bits or of a hash.
void change_last_digit(Json& text);

}  // namespace rematch::testing
