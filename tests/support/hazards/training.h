// Trains a hazard's model for a few steps, plainly or under the engine, and writes down everything
// that must not differ: values, layouts and versions, with a name each.
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

// How a step asks for its gradients.
enum class Backward : std::uint8_t {
  kOnce,         // as the model says
  kTwice,        // over a retained graph
  kOfGradients,  // of the squares of first gradients: a second backward through the first
  kInParts,      // for one parameter alone over a retained graph, then for all
  kElsewhere,    // on another thread, after the recording has ended
  kNever,        // the loss is dropped
};
const char* to_string(Backward backward);

// A new model, made with a seeded generator.
Model model_of(const Hazard& hazard);

// Copies of what a run left, in the order of its making.
struct Facts {
  struct Fact {
    std::string name;  // "step 1: gradient 3"
    at::Tensor value;
    std::int64_t version = 0;
  };
  std::vector<Fact> all;
  bool has_gradient = false;  // some gradient is not zero
  bool is_finite = true;
  bool draws = false;  // the default generator moved
};

// Empty if equal to the bit.
std::string first_difference(const Facts& a, const Facts& b);

// `checkpoint` null: no engine. Begins with a new model and a seeded generator.
Facts train(const Hazard& hazard, const Checkpoint* checkpoint, Backward backward = Backward::kOnce,
            int steps = kSteps);

// Buffers, generators and kept values as they are.
void note_state(const Model& model, const std::string& when, Facts& facts);
// Names the first of `state`'s facts that differs in `facts`; empty: none.
std::string difference_of_state(const Facts& facts, const Facts& state);
// Does backward itself write to buffers or draw, without the engine?
bool backward_changes_state(const Facts& facts_of_one_step);

// The same, for one step of a model that is there already.
void train_one_step(Model& model, const Checkpoint* checkpoint, Backward backward,
                    const std::string& step, Facts& facts);

// Of the model's first step, or of another one.
Trace trace_of(const Hazard& hazard, int step = 0);

}  // namespace rematch::testing::hazards
