// Link profiles as files, "rematch.links/1.0". Lossless.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/predict/device/links.h"

namespace rematch {

Json links_to_json(const LinkProfile& links);

// Throws FormatError with the JSON path. Ignores unknown keys.
LinkProfile links_from_json(const Json& json);

}  // namespace rematch
