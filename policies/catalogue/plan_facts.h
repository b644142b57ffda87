// Computes the figures that describe_json() and describe_layers() report.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/step/held.h"
#include "policies/trace/trace.h"

namespace rematch {

// Facts about the layers of one block list.
struct LayerFacts {
  std::string list;  // "blocks"
  int num_layers = 0;
  std::vector<std::vector<int>> checkpointed;  // indexed by region
  std::vector<int> kept;
};

// Facts about a region type, simulated on the first region that has the type.
struct TypeFacts {
  std::vector<int> regions;  // indices of the plan's regions
  RegionSimulation whole_region;
  RegionSimulation on_demand;
  Bytes dead;  // bytes of saved results that nothing reads
  // bytes that a region of this type moves to the host, unless it is the plan's last region
  Bytes on_host;
  std::vector<std::string> slots;  // one text for each pack, such as "aten::mm (op 7, attention)"
};

struct PlanFacts {
  std::vector<LayerFacts> lists;
  std::vector<TypeFacts> types;
  HeldAfterForward held;
  std::int64_t recomputed_whole_region = 0;
  std::int64_t recomputed_on_demand = 0;
};

std::vector<LayerFacts> layer_facts(const Plan& plan, const Trace& trace);
PlanFacts plan_facts(const Plan& plan, const Trace& trace);

}  // namespace rematch
