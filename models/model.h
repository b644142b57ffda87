// The interface of the reference models: parameters, and the loss of a batch. Models use only
// LibTorch and Scope objects, and do not depend on policies or recordings.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/preset/preset.h"

namespace rematch {

struct NamedTensor {
  std::string name;  // "blocks.3.attention.wq.weight"
  at::Tensor tensor;
};

// The input of one step. The model family defines the meaning of the tensors.
struct Batch {
  std::vector<at::Tensor> tensors;
};

// Runs one block of a model, for example under another checkpointing scheme. Must call `block(x)`,
// and may call it repeatedly while the model exists.
using BlockWrapper = std::function<at::Tensor(
    const std::function<at::Tensor(const at::Tensor&)>& block, const at::Tensor& x)>;

class Model {
 public:
  virtual ~Model() = default;
  void wrap_blocks(BlockWrapper wrapper) { wrapper_ = std::move(wrapper); }
  // Returns the scalar loss (float32, 0-d) with its autograd graph. Opens the top-level scopes
  // "embed", "blocks.<i>", "head" and "loss" in this order. Policy `root` checkpoints all of them
  // except "loss" as one region.
  virtual at::Tensor loss(const Batch& batch) = 0;
  // Runs this rank's stage of a pipeline, and returns the stage's output with its autograd graph:
  // the loss in the last stage, an activation in the others. `input` is the output of the stage
  // before, and undefined in the first stage. A stage opens only the scopes of its own parts, and
  // numbers its blocks from 0, so equal stages have equal scopes. loss() is for models of one
  // stage.
  virtual at::Tensor run_stage(const Batch& batch, at::Tensor /*input*/) { return loss(batch); }
  // Returns the sizes of the activation that stages pass on. Empty if the model has no stages.
  virtual std::vector<std::int64_t> stage_sizes() const { return {}; }
  // Returns the tensors of `batch` that this rank's stage reads. The others are undefined.
  virtual Batch part_of_stage(Batch batch) const { return batch; }
  // Returns the trainable parameters, in a fixed order. The tensors stay the same objects for the
  // model's life.
  virtual const std::vector<NamedTensor>& parameters() const = 0;
  // Turns this rank's gradients into gradients of the mean loss over all ranks. Call it after
  // backward. Does nothing if the model is not distributed.
  virtual void finish_gradients() {}
  // Returns the frozen weights, in a fixed order. The tensors stay the same objects for the model's
  // life.
  virtual const std::vector<NamedTensor>& frozen() const = 0;

 protected:
  // Calls block(x), through the wrapper if one is set.
  template <typename Block>
  at::Tensor run_block(const Block& block, at::Tensor x) const {
    if (wrapper_) return wrapper_(block, x);
    return block(std::move(x));
  }

 private:
  BlockWrapper wrapper_;
};

// Makes a model. Parameters are initialised from an integer hash of (parameter name, element
// index), so the values are the same on every device and in the Python code of tests/parity. On
// meta, parameters have no data. Every parameter gets a gradient in the first step. Allocates only
// parameters and constants, such as rotary tables.
std::unique_ptr<Model> make_model(const ModelSpec& spec, at::Device device);

// A deterministic source of training batches: step i gives the same batch on every device and in
// every process.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual Batch batch(std::int64_t step) = 0;
};

// Language models get windows of a text file's bytes. An empty `data_file` means the text that
// ships with the project. Video models get latents of moving shapes, a text embedding that names
// the shapes, noise and a flow time. Throws std::invalid_argument with a one-line message if the
// file is missing, unreadable or too short.
std::unique_ptr<DataSource> make_data(const ModelSpec& spec, const std::string& data_file,
                                      std::uint64_t seed, at::Device device);

}  // namespace rematch
