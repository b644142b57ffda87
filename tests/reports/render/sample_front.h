// A synthetic front for the tests of its picture, tables and page.
#pragma once

#include "policies/search/front/front_json.h"

namespace rematch::testing {

// Contains everything that a front's page can show. Some points are only predicted, some run as
// predicted, some are slower or larger than predicted, some are beaten by another point, and one
// run fails. Also has baselines with equal peak and time, long names, names that contain markup,
// and a device limit between the points.
FrontRecord representative_front();

// The same front before any point was measured.
FrontRecord predicted_front();

}  // namespace rematch::testing
