// One searched front of a page: key figures, the picture, tables.
#pragma once

#include <string>

#include "policies/search/front_json.h"

namespace rematch {

std::string page_front(const FrontRecord& record);

}  // namespace rematch
