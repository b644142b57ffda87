// What a plan keeps, for people: save sets by selector, and layers in runs.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Layers side by side that are treated alike.
struct LayerRun {
  std::string layers;                // "0-5"
  bool is_checkpointed = false;      // false: autograd keeps what it saves
  std::vector<std::string> regions;  // "attention", "ffn_norm to ffn"; empty: the whole block
  std::vector<std::string> saves;    // "attention.core::rematch::attention"
};

std::vector<LayerRun> layer_runs(const Plan& plan, const Trace& trace);

// "layers 0-5: keep attention.core::rematch::attention; 6-7: keep all"
std::string saves_text(const Plan& plan, const Trace& trace);

}  // namespace rematch
