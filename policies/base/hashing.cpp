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

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Decodes the code point at `index` and moves past it. Throws for overlong forms, surrogates and
// anything else that is not UTF-8.
char32_t next_code_point(std::string_view text, std::size_t& index) {
  const auto byte_at = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte_at(index);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  constexpr std::array<unsigned char, 5> kLeadMask = {0, 0x7F, 0x1F, 0x0F, 0x07};
  bool valid = length > 0 && index + length <= text.size();
  char32_t code_point = valid ? lead & kLeadMask[length] : 0;
  for (std::size_t offset = 1; valid && offset < length; ++offset) {
    const unsigned char byte = byte_at(index + offset);
    valid = (byte & 0xC0) == 0x80;
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  valid = valid && code_point >= kSmallest[length] && code_point <= 0x10FFFF &&
          !(code_point >= 0xD800 && code_point <= 0xDFFF);
  if (!valid) {
    throw std::invalid_argument("a JSON string is not UTF-8 at byte " + std::to_string(index));
  }
  index += length;
  return code_point;
}

std::u16string utf16(std::string_view text) {
  std::u16string units;
  for (std::size_t index = 0; index < text.size();) {
    char32_t code_point = next_code_point(text, index);
    if (code_point < 0x10000) {
      units += static_cast<char16_t>(code_point);
      continue;
    }
    code_point -= 0x10000;
    units += static_cast<char16_t>(0xD800 + (code_point >> 10));
    units += static_cast<char16_t>(0xDC00 + (code_point & 0x3FF));
  }
  return units;
}

bool sorts_before(std::string_view left, std::string_view right) {
  if (is_ascii(left) && is_ascii(right)) return left < right;
  return utf16(left) < utf16(right);
}

void write_string(std::string& out, std::string_view text) {
  if (!is_ascii(text)) utf16(text);  // throws if it is not UTF-8
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const std::size_t escape = kEscaped.find(c);
    if (escape != std::string_view::npos) {
      out += '\\';
      out += kLetters[escape];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// Number::toString of ECMA-262: the shortest digits that read back, as an integer up to 21 digits,
// as a fraction down to 1e-6, else with an exponent.
void write_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    throw std::invalid_argument("a number that is not finite has no JSON form; write null");
  }
  if (number == 0) {  // also -0
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
  std::vector<std::pair<std::string_view, const Json*>> members;
  members.reserve(json.size());
  for (const auto& member : json.get_ref<const Json::object_t&>()) {
    members.emplace_back(member.first, &member.second);
  }
  std::sort(members.begin(), members.end(), [](const auto& left, const auto& right) {
    return sorts_before(left.first, right.first);
  });
  out += '{';
  bool first = true;
  for (const auto& [key, value] : members) {
    if (!first) out += ',';
    first = false;
    write_string(out, key);
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
  throw std::invalid_argument("a binary or discarded value has no JSON form");
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
