// A synthetic front for the tests of its picture, tables and page.
#pragma once

#include "policies/search/front/front_json.h"

namespace rematch::testing {

// Contains everything that a front's page can show: points that are only predicted, that run as
// predicted, that are slower or larger than predicted, or that another point beats. Also a run that
// fails, baselines with the same peak and time, names that are long or contain markup, and a device
// limit among the points.
FrontRecord representative_front();

// The same front before anything was run.
FrontRecord predicted_front();

}  // namespace rematch::testing
