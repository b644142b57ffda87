// A plan: a policy resolved against a trace. It lists the regions and the treatment of every op in
// a region. It contains no rules: the engine only looks up treatments, and people can read a plan
// and port it to other software.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/words.h"
#include "policies/plan/treatment.h"
#include "policies/trace/hidden_effects.h"

namespace rematch {

// When recompute happens. kWholeRegion recomputes a region at once, as torch.utils.checkpoint does.
// kOnDemand recomputes a value when backward needs it.
enum class Schedule : std::uint8_t { kWholeRegion, kOnDemand };

template <>
inline constexpr std::array<std::string_view, 2> kWords<Schedule> = {"whole_region", "on_demand"};

struct PlannedOp {
  std::string name;   // same form as TracedOp::name
  std::string scope;  // relative to the parent of the region's first scope: "attention.core"
  Bytes bytes;        // bytes of fresh storages that the op allocates
  Treatment treatment = Treatment::kRecompute;
  // the reason for the treatment: "matches aten::mm", "view: free", "not in the save list"
  std::string reason;
  bool dead_save = false;  // the result is saved, but neither backward nor recompute needs it
  // True if a whole-region recompute runs the op only when backward or another op needs its result,
  // as in torch_remat's saved regions. Meaningless for a saved op.
  bool skipped = false;
  bool operator==(const PlannedOp&) const = default;
};

// Changes the order in which on_demand recomputes, in regions where the default order would have a
// higher peak than whole_region. The members are indices of packs (saved tensors), in the order in
// which autograd saved them. When backward demands `pack`, the engine recomputes `before`, then
// `pack`, then `after`.
struct DemandStep {
  int pack = 0;
  std::vector<int> before;
  std::vector<int> after;
  bool operator==(const DemandStep&) const = default;
};

// A tensor from outside the region, identified by the op and argument that read it.
struct RegionInput {
  int op = 0;        // index of the op in the region
  int argument = 0;  // index of the argument among the op's tensor arguments, in schema order
  bool operator==(const RegionInput&) const = default;
};

// Everything about a region except its position in the model. Equal regions share one type. Ops are
// in dispatch order.
struct RegionType {
  std::vector<PlannedOp> ops;
  bool early_stop = true;
  // If true, recompute runs only the ops that backward demands, even under whole_region.
  bool by_demand = false;
  // true: even on_demand recomputes this region as a whole, because this lowers the region's peak
  bool whole_on_demand = false;
  std::vector<DemandStep> demand_steps;
  // For each store, the inputs that are moved to the store when the region ends. The list for the
  // device is empty. Such an input must not share its storage with another tensor of the region.
  ByStore<std::vector<RegionInput>> stored_inputs;
  bool operator==(const RegionType&) const = default;
};

// A region: consecutive scopes, from the opening of `first_scope` to the closing of `last_scope`.
struct PlannedRegion {
  std::string first_scope;  // "blocks.0"
  std::string last_scope;   // "blocks.0"; in a region of four blocks, "blocks.3"
  int type = 0;             // index into Plan::types
  std::vector<int> layers;  // layer indices that the region covers, for people
  bool operator==(const PlannedRegion&) const = default;
};

// The plan for one shape of a step. See Note [Shapes of a step].
struct ShapePlan {
  std::string policy;  // canonical spelling
  std::string model;   // preset name of the trace
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::string trace_sha256;
  std::vector<RegionType> types;
  std::vector<PlannedRegion> regions;  // disjoint regions, in forward order
  bool operator==(const ShapePlan&) const = default;
};

// The plan for a training step, with one or more shapes.
//
// Note [Shapes of a step] The steps of a program may run different ops, for example with and
// without images in a batch. Steps that run the same ops have the same shape. A plan holds one or
// more shapes; the members inherited from ShapePlan describe the first. The engine detects from the
// ops which shape a step has.
struct Plan : ShapePlan {
  std::vector<ShapePlan> other_shapes;
  // The hidden effects of all shapes. They apply to the whole process.
  HiddenEffects hidden = {};
  // Whether the step writes to a tensor after a region has read it. If so, the engine watches the
  // whole step for such writes: see Note [Late copies].
  bool watches_writes = false;
  bool operator==(const Plan&) const = default;
};

// Returns the indices of the ops that recompute skips, in order.
std::vector<int> skipped_ops(const RegionType& type);

// Returns the shapes of the plan in order. The pointers stay valid as long as the plan exists.
std::vector<const ShapePlan*> shapes_of(const Plan& plan);

// Returns the total number of region types over all shapes.
std::size_t num_types(const Plan& plan);

// Returns each shape as a separate plan.
std::vector<Plan> plans_of_shapes(const Plan& plan);

// Returns the part of the plan that was made for the trace, as a separate plan. If no shape was
// made for the trace, returns the first shape.
Plan plan_of_trace(const Plan& plan, std::string_view trace_sha256);

// Returns whether the region moves results or inputs to a store.
bool moves_anything(const RegionType& type);

// Describes the first value that the region moves to a store: "the region offloads aten::mm".
// Returns nullopt if the region moves no value.
std::optional<std::string> move_words(const RegionType& type);

// Returns the name of a store in the plan that does not return a value's exact bits
// (StoreTraits::is_exact). Returns "" if the plan uses only exact stores. `stores` is the table of
// stores.
std::string inexact_store(const Plan& plan, std::span<const StoreTraits> stores = kStores);

// Explains which op or input a store cannot hold: "op aten::empty (scope attention) cannot be kept
// on the host". Returns nullopt if there is no such op or input. Every plan is checked when it is
// read or resolved.
std::optional<std::string> store_problem(const RegionType& type);

// Returns the SHA-256, in hex, of the plan's canonical JSON (RFC 8785). The hash omits members that
// are only for people, and does not depend on how types are numbered. Plans with the same effect on
// the same trace therefore have the same hash.
std::string plan_sha256(const Plan& plan);

// Formats layer indices for people, in the order given: "0-3, 6, 8-9".
std::string layer_ranges(const std::vector<int>& layers);

}  // namespace rematch
