// The peak rate of a device: a measured rate above it is an error of measurement, not a fast
// step. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

// Matmul flops per second that the device reaches at its highest clock with every unit busy:
// generous on purpose, since only the impossible is to be refused. Absent where the device is not
// known well enough. `threads` are those of a CPU run.
std::optional<double> most_flops_per_second(const Environment& environment, std::string_view device,
                                            std::string_view dtype, int threads);

// The dense peak on the data sheet of the card, what MFU is a share of. Float32 is without TF32, as
// LibTorch computes unless told otherwise. Absent: no sheet of this card is here, a CPU, or TF32
// was forced.
std::optional<double> sheet_flops_per_second(const Environment& environment,
                                             std::string_view device, std::string_view dtype);

// Marks a point invalid whose implied rate is above its limit, with both figures in the reason.
void refuse_impossible_rate(PointRecord& point);

}  // namespace rematch
