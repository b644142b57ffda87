// The optimizer of a run and its settings, as text. Does not need LibTorch, so every command can
// parse it.
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
  // Implicit, so that a caller can pass only a kind, which gets default settings.
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
