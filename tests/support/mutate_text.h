// Damages text and JSON as files get damaged: by a disk, an editor, a merge, somebody hostile.
#pragma once

#include <cstdint>
#include <string>

#include "policies/base/json_fwd.h"

namespace rematch::testing {

// One to four blows of one seed: bytes flipped, cut out, doubled or moved, the end cut off, and
// tokens that readers trip over put in.
std::string mutate_text(const std::string& text, std::uint32_t seed);

// Valid JSON in which one to three values have become another type, an extreme number, or nothing
// at all, and keys and elements have been doubled or exchanged.
Json mutate_json(const Json& json, std::uint32_t seed);

}  // namespace rematch::testing
