#include "harness/engine/prepared_plan.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "harness/engine/record/opaque_call.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

Keep keep_for(const PlannedOp& op) {
  if (!op.treatment.is_kept()) return Keep::kNothing;
  return {Keep::What::kOutputs, *op.treatment.kept_in};
}

// Parses the distance of an op's layer from the region's first layer. For example "+2.attention"
// gives 2.
std::optional<int> layer_distance(std::string_view scope) {
  if (!scope.starts_with('+')) return std::nullopt;
  int distance = 0;
  const auto read = std::from_chars(scope.data() + 1, scope.data() + scope.size(), distance);
  return read.ec == std::errc() ? std::optional(distance) : std::nullopt;
}

// Returns "blocks." for a region whose first scope is the layer blocks.3. Returns an empty text if
// the first scope is not a layer.
std::string list_of(const PlannedRegion& region) {
  if (region.layers.empty()) return {};
  const std::string layer = std::to_string(region.layers.front());
  const std::string_view scope = region.first_scope;
  if (!scope.ends_with(layer)) return {};
  const std::string_view list = scope.substr(0, scope.size() - layer.size());
  return list.ends_with('.') ? std::string(list) : std::string();
}

PreparedRegionType prepare(const RegionType& type, Schedule schedule, OnMismatch on_mismatch) {
  PreparedRegionType prepared;
  prepared.planned = &type;
  if (const auto problem = store_problem(type)) throw Refused("plan: " + *problem);
  prepared.extent = replay_extent(type, schedule);
  prepared.early_stop = type.early_stop;
  for (const PlannedOp& op : type.ops) {
    if (is_replay_only(op.name)) continue;
    const OpFacts* facts = find_facts(op.name);
    if (facts == nullptr && on_mismatch == OnMismatch::kRefuse) {
      throw StreamMismatch("plan names op " + op.name + " (scope " + op.scope +
                           "), which this build of LibTorch does not have; was the plan made for "
                           "another version, or is the library that registers the op not linked?");
    }
    if (facts != nullptr && facts->collective == CollectivePart::kStartWithHandle) {
      throw Refused("plan has " + op.name + " (scope " + op.scope +
                    ") in a region: it returns before it completes, and no op marks its "
                    "completion; call the functional collective (_c10d_functional) and wait_tensor "
                    "instead, or keep it outside regions");
    }
    const std::optional<int> distance = layer_distance(op.scope);
    prepared.layer_of_op.push_back(distance.value_or(-1));
    prepared.has_several_layers |= distance.value_or(0) > 0;
    prepared.planned_ops.push_back(&op);
    prepared.ops.push_back(facts);
    prepared.ids.push_back(op_id(op.name));
    prepared.keep.push_back(keep_for(op));
    if (op.treatment.is_kept()) prepared.kept_bytes += op.bytes;
  }
  prepared.skipped = skipped_ops(type);
  for (const DemandStep& step : type.demand_steps) prepared.demand_steps[step.pack] = &step;
  return prepared;
}

bool do_the_same(RegionType a, RegionType b) {
  for (RegionType* type : {&a, &b}) {
    for (PlannedOp& op : type->ops)
      op = {.name = op.name, .scope = op.scope, .treatment = op.treatment, .skipped = op.skipped};
  }
  return a == b;
}

}  // namespace

std::size_t PreparedRegionType::first_op_of(int layer_distance) const {
  const auto first = std::find(layer_of_op.begin(), layer_of_op.end(), layer_distance);
  return static_cast<std::size_t>(first - layer_of_op.begin());
}

Checkpoint::Prepared::Prepared(Plan given_plan, Schedule given_schedule, Options given_options)
    : plan(std::move(given_plan)),
      schedule(given_schedule),
      options(given_options),
      departures(plan) {
  OpaqueCall::define_op();
  mark_hidden_effects(plan.hidden);
  types.reserve(num_types(plan));  // regions point into `types`, so `types` must not reallocate
  int index = 0;
  for (const ShapePlan* shape : shapes_of(plan)) add_shape(*shape, index++);
}

void Checkpoint::Prepared::add_shape(const ShapePlan& shape, int index) {
  const std::size_t first_type = types.size();
  for (const RegionType& type : shape.types) {
    types.push_back(prepare(type, schedule, options.on_mismatch));
    types.back().shape = index;
    types.back().number = types.size() - 1;
    types.back().index = static_cast<int>(types.back().number - first_type);
  }
  moves_values |= std::any_of(shape.types.begin(), shape.types.end(), moves_anything);
  if (shape.regions.empty() || is_known(shape)) return;
  const std::size_t first = regions.size();
  first_regions.push_back(first);
  for (const PlannedRegion& region : shape.regions) {
    const std::size_t number = regions.size();
    const bool is_last = number + 1 == first + shape.regions.size();
    regions.push_back({.planned = &region,
                       .type = &types[first_type + static_cast<std::size_t>(region.type)],
                       .next = is_last ? first : number + 1,
                       .is_first = number == first,
                       .is_last = is_last});
    regions_at[region.first_scope].push_back(number);
    add_inner_layers(number);
  }
}

// Returns whether an earlier shape of the plan has the same ops and treats them in the same way.
bool Checkpoint::Prepared::is_known(const ShapePlan& shape) const {
  return std::any_of(first_regions.begin(), first_regions.end(), [&](std::size_t first) {
    for (std::size_t i = 0; i < shape.regions.size(); ++i) {
      const PlannedRegion& region = shape.regions[i];
      const PreparedRegion& known = regions[first + i];
      const bool is_same = region.first_scope == known.planned->first_scope &&
                           region.last_scope == known.planned->last_scope &&
                           do_the_same(shape.types[region.type], *known.type->planned);
      if (!is_same || known.is_last != (i + 1 == shape.regions.size())) return false;
    }
    return true;
  });
}

void Checkpoint::Prepared::add_inner_layers(std::size_t region) {
  const PlannedRegion& planned = *regions[region].planned;
  const std::string list = list_of(planned);
  if (list.empty()) return;
  int known = 0;  // distance of the layer that was added last
  for (const int distance : regions[region].type->layer_of_op) {
    if (distance <= known) continue;
    known = distance;
    inner_layers[list + std::to_string(planned.layers.front() + distance)].push_back(
        {region, distance});
  }
}

std::optional<int> Checkpoint::Prepared::inner_layer(const std::string& scope,
                                                     std::size_t region) const {
  const auto found = inner_layers.find(scope);
  if (found == inner_layers.end()) return std::nullopt;
  for (const InnerLayer& layer : found->second) {
    if (layer.region == region) return layer.distance;
  }
  return std::nullopt;
}

Checkpoint::Checkpoint(const Plan& plan, Schedule schedule, Options options)
    : prepared_(std::make_shared<const Prepared>(plan, schedule, options)) {}
Checkpoint::~Checkpoint() = default;

std::vector<Departures> Checkpoint::departures() const { return prepared_->departures.all(); }
std::int64_t Checkpoint::num_left() const { return prepared_->departures.num_left(); }

std::vector<RecomputeDifference> Checkpoint::recompute_differences() const {
  return prepared_->differences.all();
}
GatheredTensors& Checkpoint::gathered() const { return prepared_->gathered; }

bool Checkpoint::offloads() const { return prepared_->moves_values; }
StoreUse Checkpoint::host_memory() const { return prepared_->stores.use(); }
void Checkpoint::restart_host_counts() const { prepared_->stores.restart_counts(); }
void Checkpoint::observe_moves(MoveObserver* observer) const {
  prepared_->stores.observe(observer);
}

}  // namespace rematch
