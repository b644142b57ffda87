#include "reports/record/json/number_bits.h"

#include <bit>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace rematch {
namespace {

constexpr std::string_view kPrefix = "0x";
constexpr std::size_t kFloatDigits = 8;
constexpr std::size_t kDoubleDigits = 16;

}  // namespace

std::optional<double> number_of_bits(std::string_view bits) {
  if (!bits.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = bits.substr(kPrefix.size());
  if (digits.size() != kFloatDigits && digits.size() != kDoubleDigits) return std::nullopt;
  std::uint64_t word = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, word, /*base=*/16);
  if (error != std::errc() || rest != end) return std::nullopt;
  if (digits.size() == kDoubleDigits) return std::bit_cast<double>(word);
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(word)));
}

}  // namespace rematch
