// The optimizer of a measured step: AdamW through LibTorch's fused op, or none. Deliberately not a
// library of optimizers.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

enum class OptimizerKind : std::uint8_t { kAdamW, kNothing };

// As torch.optim.AdamW(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01, fused=True).
struct AdamWSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

struct OptimizerChoice {
  // Implicit: a kind alone is a choice, with its defaults.
  OptimizerChoice(OptimizerKind chosen = OptimizerKind::kAdamW) : kind(chosen) {}
  OptimizerKind kind;
  AdamWSettings settings;  // of kAdamW
};

// "adamw", "adamw(learning_rate=3e-4)", "none"; nothing for anything else, or a rate that is not
// a positive number.
std::optional<OptimizerChoice> optimizer_from_string(std::string_view text);
// The canonical spelling: what is not the default is said.
std::string to_string(const OptimizerChoice& choice);

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Allocates the state that would otherwise be born in the first step.
  virtual void prepare() = 0;
  // Bytes it holds between steps, without the parameters.
  virtual std::vector<at::Tensor> state() const = 0;
  // One update from the parameters' gradients; parameters without one stay as they are.
  virtual void step() = 0;
};

// `parameters` are leaves and outlive the optimizer's use. bfloat16 ones get float32 master weights
// and moments: the update runs on the master, the parameter is its rounded copy.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice,
                                          std::vector<at::Tensor> parameters);

}  // namespace rematch
