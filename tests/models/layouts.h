// Small models that are distributed over ranks, for tests.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "models/preset/parallel.h"
#include "tests/models/model_checks.h"

namespace rematch {

struct LayoutCase {
  std::string preset;
  std::string layout;
  std::map<std::string, std::int64_t> dimensions;
};

// Returns the spec of rank `rank` under the case's layout. Fails the test if the layout is
// rejected.
inline ModelSpec spec_of(const LayoutCase& which, int rank, std::string_view dtype = "float32") {
  std::map<std::string, std::int64_t> dimensions = which.dimensions;
  if (!which.layout.empty()) {
    dimensions.merge(std::get<std::map<std::string, std::int64_t>>(parse_layout(which.layout)));
  }
  ModelSpec spec = spec_of(which.preset, dimensions, dtype);
  spec.rank = rank;
  return spec;
}

}  // namespace rematch
