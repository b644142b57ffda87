// A synthetic front for the tests of its picture, tables and page.
#pragma once

#include "policies/search/front/front_json.h"

namespace rematch::testing {

// Contains everything that a front's page can show: points that are only predicted; points that run
// as predicted, slower, larger, or behind another point; a run that fails; baselines at one place;
// names that are long or mean something in markup; and a device limit among the points.
FrontRecord representative_front();

// The same front before anything was run.
FrontRecord predicted_front();

}  // namespace rematch::testing
