// Properties over random values that shrink to a smallest counterexample (RapidCheck), with the
// same cases in every run: REMATCH_SEEDS asks for more of them.
#pragma once

#include <rapidcheck.h>

#include <cstdlib>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch::testing {

// Runs `property` on random arguments; RapidCheck prints the smallest that fails to stderr.
// Generators of the arguments' types are rc::Arbitrary, or rc::gen calls inside the property.
template <typename Property>
void check_property(const std::string& description, const Property& property) {
  // Read by RapidCheck once a process. RC_PARAMS from outside, such as a `reproduce=`, wins.
  const std::string parameters = "seed=20260101 max_success=" + std::to_string(num_seeds(300));
  setenv("RC_PARAMS", parameters.c_str(), /*overwrite=*/0);
  CHECK(rc::check(description, property));
}

}  // namespace rematch::testing
