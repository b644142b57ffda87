// A made-up front for the tests of its picture, tables and page.
#pragma once

#include "policies/search/front/front_json.h"

namespace rematch::testing {

// Everything that a front's page can show: points predicted alone, points that run as predicted,
// slower, larger and behind another, a run that fails, baselines at one place, names that are long
// or mean something in markup, and a device limit among the points.
FrontRecord telling_front();

// The same before anything was run.
FrontRecord predicted_front();

}  // namespace rematch::testing
