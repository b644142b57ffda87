#include "policies/base/hashing.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "policies/base/json.h"

namespace rematch {
namespace {

// Compares strings by their UTF-16 code units. The order equals the byte order of UTF-8, except
// that code points from U+10000 (first byte 0xF0 or higher) sort before U+E000 to U+FFFF (first
// byte 0xEE or 0xEF).
bool sorts_before(std::string_view left, std::string_view right) {
  const auto order_of = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : int{byte};
  };
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                      [&](char a, char b) { return order_of(a) < order_of(b); });
}

void write_string(std::string& out, const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
  });
  if (is_plain) {
    out.append("\"").append(text).append("\"");
    return;
  }
  try {
    out += Json(text).dump();  // Json::dump escapes strings exactly as RFC 8785 requires.
  } catch (const Json::type_error&) {
    throw std::invalid_argument("a JSON string is not UTF-8: " + line_of(text));
  }
}

// Implements Number::toString of ECMA-262, which writes the shortest digits that read back exactly.
// Uses an exponent for integers of more than 21 digits and for fractions below 1e-6.
void write_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    throw std::invalid_argument("JSON cannot hold a number that is not finite; write null");
  }
  if (number == 0) {  // -0 also equals 0, and RFC 8785 writes it as 0
    out += '0';
    return;
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(number),
                                 std::chars_format::scientific);
  std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  int exponent = 0;
  const std::size_t sign_width = text[e + 1] == '+' ? 1 : 0;
  std::from_chars(text.data() + e + 1 + sign_width, text.data() + text.size(), exponent);

  if (number < 0) out += '-';
  const int num_digits = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (num_digits <= point && point <= 21) {
    out += digits;
    out.append(static_cast<std::size_t>(point - num_digits), '0');
  } else if (0 < point && point <= 21) {
    out += digits.substr(0, static_cast<std::size_t>(point));
    out += '.';
    out += digits.substr(static_cast<std::size_t>(point));
  } else if (-6 < point && point <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-point), '0');
    out += digits;
  } else {
    out += digits[0];
    if (num_digits > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    out += std::to_string(std::abs(exponent));
  }
}

void write_integer(std::string& out, const Json& json) {
  bool too_large = false;
  if (json.is_number_unsigned()) {
    too_large = json.get<std::uint64_t>() > std::uint64_t{kLargestInteger};
  } else {
    const auto number = json.get<std::int64_t>();
    too_large = number > kLargestInteger || number < -kLargestInteger;
  }
  if (too_large) {
    throw std::invalid_argument("integer " + json.dump() +
                                " is beyond 2^53, which JSON numbers cannot hold exactly; write it "
                                "as a string");
  }
  out += std::to_string(json.get<std::int64_t>());
}

void write_value(std::string& out, const Json& json);

void write_object(std::string& out, const Json& json) {
  std::vector<std::pair<const std::string*, const Json*>> members;
  members.reserve(json.size());
  for (const auto& member : json.get_ref<const Json::object_t&>()) {
    members.emplace_back(&member.first, &member.second);
  }
  std::sort(members.begin(), members.end(), [](const auto& left, const auto& right) {
    return sorts_before(*left.first, *right.first);
  });
  out += '{';
  bool first = true;
  for (const auto& [key, value] : members) {
    if (!first) out += ',';
    first = false;
    write_string(out, *key);
    out += ':';
    write_value(out, *value);
  }
  out += '}';
}

void write_array(std::string& out, const Json& json) {
  out += '[';
  bool first = true;
  for (const Json& element : json) {
    if (!first) out += ',';
    first = false;
    write_value(out, element);
  }
  out += ']';
}

void write_value(std::string& out, const Json& json) {
  switch (json.type()) {
    case Json::value_t::object:
      return write_object(out, json);
    case Json::value_t::array:
      return write_array(out, json);
    case Json::value_t::string:
      return write_string(out, json.get_ref<const std::string&>());
    case Json::value_t::boolean:
      out += json.get<bool>() ? "true" : "false";
      return;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return write_integer(out, json);
    case Json::value_t::number_float:
      return write_double(out, json.get<double>());
    case Json::value_t::null:
      out += "null";
      return;
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  throw std::invalid_argument("JSON cannot hold a binary or discarded value");
}

}  // namespace

std::string canonical_json(const Json& json) {
  std::string out;
  write_value(out, json);
  return out;
}

std::string canonical_sha256(const Json& json) { return sha256_hex(canonical_json(json)); }

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL's EVP_Digest failed for SHA-256; is the provider disabled?");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(std::size_t{2} * size);
  for (unsigned int index = 0; index < size; ++index) {
    hex += kDigits[digest[index] >> 4];
    hex += kDigits[digest[index] & 15];
  }
  return hex;
}

}  // namespace rematch
