// A plan: a policy resolved against a trace. Regions, and the treatment of every op in them, by
// index. No rule is left in it: the engine looks treatments up, people read and port it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/words.h"

namespace rematch {

// Treatment of the outputs of an op between forward and backward.
//
// Note [When an offloaded value is where]
// Its whole storage is copied to the host when its op has run, an input's when the region ends. It
// leaves the device when the next region of the plan ends, so bytes follow from the plan and not
// from how fast a copy was; what the last region offloads stays, for its backward comes first. The
// first demand of backward in a region brings back its values and those of the region before it.
enum class Treatment : std::uint8_t { kSave, kRecompute, kOffload };

template <>
inline constexpr std::array<std::string_view, 3> kWords<Treatment> = {"save", "recompute",
                                                                      "offload"};

// When recompute happens: torch.utils.checkpoint's semantics, or what backward needs when it
// needs it.
enum class Schedule : std::uint8_t { kWholeRegion, kOnDemand };

template <>
inline constexpr std::array<std::string_view, 2> kWords<Schedule> = {"whole_region", "on_demand"};

struct PlannedOp {
  std::string name;   // as TracedOp::name
  std::string scope;  // relative to the region's first scope's parent: "attention.core"
  Bytes bytes;        // fresh storages it allocates
  Treatment treatment = Treatment::kRecompute;
  std::string
      reason;  // one of a few: "matches aten::mm", "view: free", "not in the save list", ...
  bool dead_save = false;  // saved, yet no recompute ever reads it
  bool operator==(const PlannedOp&) const = default;
};

// on_demand only: when backward asks for saved tensor `pack` (index in the region's pack order),
// these packs' values are made available too, in this order around it. It is how a region whose
// lazy order would peak higher is run in another order. Without an entry: the pack alone.
struct DemandStep {
  int pack = 0;
  std::vector<int> before;
  std::vector<int> after;
  bool operator==(const DemandStep&) const = default;
};

// A tensor from outside the region, by where the region reads it.
struct RegionInput {
  int op = 0;        // index in the region
  int argument = 0;  // among the op's tensor arguments, in schema order
  bool operator==(const RegionInput&) const = default;
};

// The content that equal regions share. Ops in dispatch order.
struct RegionType {
  std::vector<PlannedOp> ops;
  bool early_stop = true;
  // Under either schedule: only what backward asks for is run, as on_demand does. What is
  // recomputed because nothing reads it is then never run.
  bool by_demand = false;
  bool whole_on_demand = false;  // on_demand runs this region like whole_region: it peaks lower so
  std::vector<DemandStep> demand_steps;
  // Wait on the host from the end of the region to its backward, as the results of offloaded ops
  // do. Each the only tensor on its storage that the region reads.
  std::vector<RegionInput> offload_inputs;
  bool operator==(const RegionType&) const = default;
};

// A run of consecutive scopes: starts where `first_scope` opens, ends where `last_scope` closes.
struct PlannedRegion {
  std::string first_scope;  // "blocks.0"
  std::string last_scope;   // "blocks.0", or "blocks.3" for a segment of four
  int type = 0;             // index into Plan::types
  std::vector<int> layers;  // layer indices it covers, for people
  bool operator==(const PlannedRegion&) const = default;
};

// The plan of one shape of a step. See Note [Shapes of a step].
struct ShapePlan {
  std::string policy;  // canonical spelling
  std::string model;   // preset name of the trace
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::string trace_sha256;
  std::vector<RegionType> types;
  std::vector<PlannedRegion> regions;  // in forward order, disjoint
  bool operator==(const ShapePlan&) const = default;
};

// The plan of a step.
//
// Note [Shapes of a step]
// The steps of a program may run different ops: for batches with and without padding or images, or
// in an evaluation. Steps that run the same ops have one shape. A plan holds one or more
// shapes, the first in its own members. So a place, which is the scope where a region begins, has a
// region type for each shape. The engine follows the shape whose ops the step runs.
struct Plan : ShapePlan {
  std::vector<ShapePlan> other_shapes;
  bool operator==(const Plan&) const = default;
};

// The shapes of the plan, in their order. They belong to the plan.
std::vector<const ShapePlan*> shapes_of(const Plan& plan);

// The number of region types in all shapes.
std::size_t num_types(const Plan& plan);

// Each shape as a plan of its own.
std::vector<Plan> plans_of_shapes(const Plan& plan);

// The shape that was made for the trace, as a plan of its own; the first shape if none was.
Plan plan_of_trace(const Plan& plan, std::string_view trace_sha256);

// Whether an offload can take effect: not a collective's result, which fills while later ops run,
// nor an `empty`'s, which others fill. Such a result is kept on the device.
bool can_offload(std::string_view op_name);
bool offloads_anything(const RegionType& type);

// SHA-256, in hex, of the canonical JSON (RFC 8785) of what the plan does: policy name, reasons,
// the numbering of types and everything else that is there for people are left out, so plans that
// do the same to the same trace have the same hash.
std::string plan_sha256(const Plan& plan);

// Layer indices as people read them, in the order given: "0-3, 6, 8-9".
std::string layer_ranges(const std::vector<int>& layers);

// An input that cannot be used, as a value.

// Expected of a user's input, so returned and never thrown; `message` is one line that names the
// value, the allowed range and what to do.
struct Rejected {
  std::string message;
};

}  // namespace rematch
