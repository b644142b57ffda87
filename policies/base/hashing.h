// Computes SHA-256 hashes of canonical JSON: the hashes of traces and plans, and the keys of
// measured points.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"

namespace rematch {

// Canonical JSON is RFC 8785 (JSON Canonicalization Scheme). Equal values give equal bytes, here
// and in implementations in other languages.

// Throws std::invalid_argument for values without a canonical form: non-finite numbers, integers
// beyond +-2^53 (write those as strings), and strings that are not UTF-8.
std::string canonical_json(const Json& json);

// Returns the SHA-256 of canonical_json(json) as 64 lower-case hex digits.
std::string canonical_sha256(const Json& json);

// Returns the SHA-256 of `bytes` as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace rematch
