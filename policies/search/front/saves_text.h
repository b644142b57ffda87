// The saves of a plan in words: save sets by selector, and layers in runs.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Layers side by side that are treated alike.
struct LayerRun {
  std::string layers;                      // "0-5"
  bool is_checkpointed = false;            // false: autograd keeps what it saves
  std::vector<std::string> regions;        // "attention", "ffn_norm to ffn"; empty: the whole block
  std::vector<std::string> saves;          // "attention.core::rematch::attention"
  std::vector<std::string> offloads = {};  // of the saves, and "inputs"
  bool operator==(const LayerRun&) const = default;
};

std::vector<LayerRun> layer_runs(const Plan& plan, const Trace& trace);

// "layers 0-31: keep attention.core::attention; 13-31 also ffn::mm#1; 0-31 in segments of 4": an op
// without a number stands for all of its name in its scope, and casts are not named. Parameters
// that layers gather and hold are said in words: "0-31: keep all, gathered parameters too". The
// file has every layer by itself.
std::string saves_text(const Plan& plan, const Trace& trace);

}  // namespace rematch
