// Small models, each with a property that checkpointing easily gets wrong, and everything needed to
// train them: buffers, generators, an optimizer. Each theme has its own file; all_hazards() lists
// all of them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policies/plan/plan.h"

namespace rematch::testing::hazards {

// Values that a program keeps across backward. They are compared after backward, with their
// gradients.
using Watched = std::shared_ptr<std::vector<at::Tensor>>;

// The tensors and the generator of one layer. `weights[i]` requires grad, `buffers[i]` does not.
struct Parts {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> buffers;
  at::Generator generator;  // buffers that belong only to this layer
  Watched watched;          // tensors that all layers of the model share
  int layer = 0;
  const at::Tensor& operator[](std::size_t index) const { return weights[index]; }
};

using Layer = std::function<at::Tensor(const at::Tensor& x, const Parts& parts)>;

struct Model {
  std::vector<at::Tensor> parameters;
  at::Tensor input;
  std::vector<at::Tensor> buffers;        // tensors compared after forward and after backward
  std::vector<at::Generator> generators;  // generators in addition to the default one
  Watched watched =
      std::make_shared<std::vector<at::Tensor>>();  // lists that are emptied after each step
  std::vector<std::function<at::Tensor(const at::Tensor&)>>
      layers;  // layers in order; layer i is scope "blocks.<i>"
  std::function<at::Tensor(const at::Tensor& output)>
      loss;                                              // computes the loss; if empty, loss_of()
  std::function<void(const at::Tensor& loss)> backward;  // runs backward; if empty, loss.backward()
  std::function<void()> update;  // runs the optimizer; if empty, gradient descent
  // Used by models whose steps differ. `step` is the number of the step, from 0. `order` returns
  // the layers that run in that step, in order; an empty function runs all layers.
  std::shared_ptr<int> step = std::make_shared<int>(0);
  std::function<std::vector<std::size_t>(int step)> order;
};

struct Hazard {
  std::string name;
  std::function<Model()> make;
  // If not empty, the engine may reject the model with this message, or run it correctly, depending
  // on where the region ends.
  std::string refusal = {};
  bool needs_process = false;  // whether the hazard uses state of the whole process, so that two
                               // threads must not run it at once
};

using Shape = std::vector<std::int64_t>;

inline constexpr std::int64_t kTokens = 6;
inline constexpr std::int64_t kDim = 8;
inline const std::vector<Shape> kSquare = {{kDim, kDim}};  // shapes of a layer with one square
                                                           // weight

struct Options {
  Shape input = {kTokens, kDim};
  at::ScalarType dtype = at::kFloat;
  std::vector<Shape> buffers = {};  // shapes of buffers, which are filled with ones
  int layers = 3;
  // If false, each layer ends with a scope "tail" of its own. The tail adds the layer's input to
  // the result of scope "core" and keeps the values small. Scope "core" then never ends a region.
  bool bare = false;
};

// Returns a model of several equal layers, each with its own weights of the given shapes.
Model layers_of(const std::vector<Shape>& weights, const Layer& layer, const Options& options = {});
Hazard hazard(const std::string& name, const std::vector<Shape>& weights, const Layer& layer,
              const Options& options = {}, const std::string& refusal = {});

// Models whose later steps differ from step 0: ops are added, left out or reordered, or have
// another dtype or other sizes. Plans are made for step 0.
std::vector<Hazard> varying_hazards();

// Draws the weights and inputs of models. Each thread has its own generator, so a thread that makes
// a model never draws from the process's generator.
at::Generator& generator_of_models();

at::Tensor leaf(const Shape& sizes, at::ScalarType dtype = at::kFloat);
// Returns 0, 1, ..., modulo `limit`, as indices.
at::Tensor indices(std::int64_t count, std::int64_t limit);

const std::vector<Hazard>& all_hazards();

// Each of these functions returns the hazards of one theme.
std::vector<Hazard> attention_hazards();
std::vector<Hazard> convolution_hazards();
std::vector<Hazard> data_dependent_hazards();
std::vector<Hazard> dtype_hazards();
std::vector<Hazard> function_hazards();
std::vector<Hazard> held_hazards();
std::vector<Hazard> hook_hazards();
std::vector<Hazard> in_place_hazards();
std::vector<Hazard> indexing_hazards();
std::vector<Hazard> mode_hazards();
std::vector<Hazard> multi_output_hazards();
std::vector<Hazard> norm_hazards();
std::vector<Hazard> optimizer_hazards();
std::vector<Hazard> random_hazards();
std::vector<Hazard> recurrent_hazards();
std::vector<Hazard> sharing_hazards();
std::vector<Hazard> view_hazards();

}  // namespace rematch::testing::hazards
