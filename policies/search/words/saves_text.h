// Describes in text what a plan saves: the names of saved ops, and the layers that save them.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Adjacent layers that the plan treats alike.
struct LayerRun {
  std::string layers;  // "0-5"
  // false: the layers have no region, so autograd keeps all their saved tensors
  bool is_checkpointed = false;
  std::vector<std::string> regions;  // "attention", "ffn_norm to ffn"; empty: the whole block
  std::vector<std::string> saves;    // "attention.core::rematch::attention"
  // the entries of `saves` that are offloaded, and "inputs" if the region's inputs are offloaded
  std::vector<std::string> offloads = {};
  bool operator==(const LayerRun&) const = default;
};

std::vector<LayerRun> layer_runs(const Plan& plan, const Trace& trace);

// Returns a text such as "layers 0-31: keep attention.core::attention; 13-31 also ffn::mm#1; 0-31
// in segments of 4". An op without a number stands for all ops with its name in its scope. The text
// does not name casts.
std::string saves_text(const Plan& plan, const Trace& trace);

}  // namespace rematch
