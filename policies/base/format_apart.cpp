#include "policies/base/format_apart.h"

#include <cmath>

#include "policies/base/format.h"

namespace rematch {

std::string format_apart(Bytes bytes, Bytes other) {
  std::string text = format_bytes(bytes);
  if (bytes == other || text != format_bytes(other)) return text;
  const std::string unit = text.substr(text.find(' '));
  double unit_bytes = 1024;
  if (unit == " MiB") unit_bytes = std::pow(2, 20);
  if (unit == " GiB") unit_bytes = std::pow(2, 30);
  if (unit == " TiB") unit_bytes = std::pow(2, 40);
  constexpr int kMaxDecimals = 6;
  for (int decimals = 1; decimals <= kMaxDecimals; ++decimals) {
    const std::string number =
        format_fixed(static_cast<double>(bytes.count) / unit_bytes, decimals);
    if (number != format_fixed(static_cast<double>(other.count) / unit_bytes, decimals)) {
      return number + unit;
    }
  }
  return std::to_string(bytes.count) + " B";
}

}  // namespace rematch
