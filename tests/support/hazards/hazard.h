// Little models, each with a property that checkpointing gets wrong easily, and what it takes to
// train them: buffers, generators, an optimizer. One file a theme; hazards() has them all.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policies/plan/plan.h"

namespace rematch::testing::hazards {

// Values that a program keeps across backward; compared after it, with their gradients.
using Watched = std::shared_ptr<std::vector<at::Tensor>>;

// What a layer owns. `weights[i]` requires grad, `buffers[i]` does not.
struct Parts {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> buffers;
  at::Generator generator;  // the layer's own
  Watched watched;          // the model's
  int layer = 0;
  const at::Tensor& operator[](std::size_t index) const { return weights[index]; }
};

using Layer = std::function<at::Tensor(const at::Tensor& x, const Parts& parts)>;

struct Model {
  std::vector<at::Tensor> parameters;
  at::Tensor input;
  std::vector<at::Tensor> buffers;        // compared after forward and after backward
  std::vector<at::Generator> generators;  // beside the default one
  Watched watched = std::make_shared<std::vector<at::Tensor>>();     // emptied after each step
  std::vector<std::function<at::Tensor(const at::Tensor&)>> layers;  // layer i is "blocks.<i>"
  std::function<at::Tensor(const at::Tensor& output)> loss;          // empty: loss_of()
  std::function<void(const at::Tensor& loss)> backward;              // empty: loss.backward()
  std::function<void()> update;                                      // empty: gradient descent
  // Of a model whose steps differ: the number of the step, from 0, and the layers that run in it,
  // in their order. Empty: all.
  std::shared_ptr<int> step = std::make_shared<int>(0);
  std::function<std::vector<std::size_t>(int step)> order;
};

struct Hazard {
  std::string name;
  std::function<Model()> make;
  // Not empty: where a region ends decides whether the engine refuses the model, in these words, or
  // is right.
  std::string refusal = {};
  bool needs_process = false;  // uses state of the whole process: not for two threads at once
};

using Shape = std::vector<std::int64_t>;

inline constexpr std::int64_t kTokens = 6;
inline constexpr std::int64_t kDim = 8;
inline const std::vector<Shape> kSquare = {{kDim, kDim}};  // one weight

struct Options {
  Shape input = {kTokens, kDim};
  at::ScalarType dtype = at::kFloat;
  std::vector<Shape> buffers = {};  // of ones
  int layers = 3;
  // Without it each layer ends in a scope "tail" of its own, which adds the layer's input to what
  // the scope "core" made and keeps values small; "core" then never is a region's last word.
  bool bare = false;
};

// A model of some equal layers, each with its own weights of the given shapes.
Model layers_of(const std::vector<Shape>& weights, const Layer& layer, const Options& options = {});
Hazard hazard(const std::string& name, const std::vector<Shape>& weights, const Layer& layer,
              const Options& options = {}, const std::string& refusal = {});

// Models whose steps run other ops each: added, left out, in another order, of another type, on
// other sizes. Step 0 is the one that plans are made for.
std::vector<Hazard> varying_hazards();

// Draws the weights and inputs of models. A thread's own: the process's generator is not drawn from
// while another thread makes a model.
at::Generator& generator_of_models();

at::Tensor leaf(const Shape& sizes, at::ScalarType dtype = at::kFloat);
// 0, 1, ..., modulo `limit`, as indices.
at::Tensor indices(std::int64_t count, std::int64_t limit);

const std::vector<Hazard>& all_hazards();

// What no plan can be made for, and the words of the refusal.
struct RefusedHazard {
  Hazard hazard;
  std::string message;
};
std::vector<RefusedHazard> refused_hazards();

// By theme.
std::vector<Hazard> attention_hazards();
std::vector<Hazard> convolution_hazards();
std::vector<Hazard> data_dependent_hazards();
std::vector<Hazard> dtype_hazards();
std::vector<Hazard> function_hazards();
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
