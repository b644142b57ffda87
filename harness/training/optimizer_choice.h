// The optimizer of a run, with its settings, as text. No LibTorch, so every command can read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policies/predict/step/optimizer_bytes.h"

namespace rematch {

// The defaults match torch.optim.AdamW(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01,
// fused=True).
struct AdamWSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

struct OptimizerChoice {
  // The constructor is implicit, because a kind alone is a choice: it has default settings.
  OptimizerChoice(OptimizerKind chosen = OptimizerKind::kAdamW) : kind(chosen) {}
  OptimizerKind kind;      // kAdamW or kNothing; the other kinds exist only in predictions
  AdamWSettings settings;  // settings of kAdamW
};

// Parses "adamw", "adamw(learning_rate=3e-4)" or "none". Returns nothing for any other text, and
// for a rate that is not a positive number.
std::optional<OptimizerChoice> optimizer_from_string(std::string_view text);
// Returns the canonical spelling, which omits defaults.
std::string to_string(const OptimizerChoice& choice);

}  // namespace rematch
