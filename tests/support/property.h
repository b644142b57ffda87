// Checks properties over random values. RapidCheck shrinks a failure to a minimal counterexample.
// Every run uses the same cases; REMATCH_SEEDS asks for more.
#pragma once

#include <rapidcheck.h>

#include <cstdlib>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch::testing {

// Runs `property` on random arguments. RapidCheck prints the smallest failing arguments to stderr.
// Arguments come from rc::Arbitrary of their types, or from rc::gen calls inside the property.
template <typename Property>
void check_property(const std::string& description, const Property& property) {
  // RapidCheck reads RC_PARAMS once per process. An RC_PARAMS set by the caller, such as a
  // `reproduce=`, takes precedence.
  const std::string parameters = "seed=20260101 max_success=" + std::to_string(num_seeds(300));
  setenv("RC_PARAMS", parameters.c_str(), /*overwrite=*/0);
  CHECK(rc::check(description, property));
}

}  // namespace rematch::testing
