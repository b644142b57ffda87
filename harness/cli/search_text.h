// A front as tables and lines for people.
#pragma once

#include <string>

#include "policies/search/front_json.h"

namespace rematch {

std::string front_to_text(const FrontRecord& record);

}  // namespace rematch
