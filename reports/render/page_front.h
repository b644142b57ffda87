// One searched front of a page: key figures, the picture, tables.
#pragma once

#include "policies/search/front_json.h"
#include "reports/render/page_figure.h"

namespace rematch {

PagePart page_front(const FrontRecord& record);

}  // namespace rematch
