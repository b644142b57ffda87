// The number that recorded bits stand for: a report holds losses both as numbers and as bits, and
// gradient norms as bits alone.
#pragma once

#include <optional>
#include <string_view>

namespace rematch {

// "0x3fc00000" is 1.5: eight hex digits are a float32's, sixteen a float64's. Absent: any other
// text. Infinities and not-a-numbers come back as they are.
std::optional<double> number_of_bits(std::string_view bits);

}  // namespace rematch
