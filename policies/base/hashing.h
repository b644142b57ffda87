// The keys of points and the hashes of traces and plans: SHA-256 of the one spelling of a JSON
// value.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"

namespace rematch {

// The one spelling of a JSON value that hashes are taken of: RFC 8785 (JSON Canonicalization
// Scheme). Equal values give equal bytes, here and in any other language's implementation.

// No white space, keys sorted by UTF-16 code units, numbers as ECMAScript prints them. Throws
// std::invalid_argument for what the RFC has no spelling for: numbers that are not finite,
// integers beyond +-2^53 (write those as strings), and strings that are not UTF-8.
std::string canonical_json(const Json& json);

// SHA-256 of that, in hex.
std::string canonical_sha256(const Json& json);

// SHA-256: 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace rematch
