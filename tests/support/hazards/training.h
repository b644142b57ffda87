// Trains a hazard's model for a few steps, plainly or under the engine. Records every result that
// must not differ: values, layouts and versions, each with a name.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/engine/recording.h"
#include "policies/trace/trace.h"
#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {

inline constexpr int kSteps = 2;

// How a step computes its gradients.
enum class Backward : std::uint8_t {
  kOnce,         // runs the model's own backward once
  kTwice,        // runs backward twice, over a retained graph
  kOfGradients,  // runs backward on squares of the input's gradient
  kInParts,      // runs backward for one parameter over a retained graph, then for all parameters
  kElsewhere,    // runs backward on another thread, after the recording has ended
  kNever,        // drops the loss without running backward
};
const char* to_string(Backward backward);

// Makes the model after seeding the generators.
Model model_of(const Hazard& hazard);

// Copies of the results of a run, in the order they were recorded.
struct Facts {
  struct Fact {
    std::string name;  // name of a fact, such as "step 1: gradient 3"
    at::Tensor value;
    std::int64_t version = 0;
  };
  std::vector<Fact> all;
  bool has_gradient = false;  // whether at least one gradient is not zero
  bool is_finite = true;
  bool draws = false;  // whether the default generator advanced
};

// Names the first fact that differs. Returns an empty string if all facts are bitwise equal.
std::string first_difference(const Facts& a, const Facts& b);

// Makes the model with seeded generators, then trains it. If `checkpoint` is null, runs without the
// engine.
Facts train(const Hazard& hazard, const Checkpoint* checkpoint, Backward backward = Backward::kOnce,
            int steps = kSteps);

// Records the current buffers, generators and watched values.
void note_state(const Model& model, const std::string& when, Facts& facts);
// Compares the values in `state` with the values of the same names in `facts`. Returns the first
// name whose value is missing or differs. Returns an empty string if all are equal.
std::string difference_of_state(const Facts& facts, const Facts& state);
// Returns whether backward itself writes to buffers or draws random numbers. `facts_of_one_step`
// must come from a run without the engine.
bool backward_changes_state(const Facts& facts_of_one_step);

// Trains an existing model for one step.
void train_one_step(Model& model, const Checkpoint* checkpoint, Backward backward,
                    const std::string& step, Facts& facts);

// Returns the trace of the given step.
Trace trace_of(const Hazard& hazard, int step = 0);

}  // namespace rematch::testing::hazards
