// The part of a page for a searched front: key figures, the front, its points and what they keep.
#pragma once

#include "policies/search/front/front_json.h"
#include "reports/render/pages/elements.h"

namespace rematch::page {

Part front_part(const FrontRecord& record);

}  // namespace rematch::page
