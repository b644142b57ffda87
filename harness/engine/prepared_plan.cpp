#include "harness/engine/prepared_plan.h"

#include <algorithm>

namespace rematch {
namespace {

Keep keep_for(const PlannedOp& op) {
  switch (op.treatment) {
    case Treatment::kRecompute:
      return Keep::kNothing;
    case Treatment::kOffload:
      if (can_offload(op.name)) return Keep::kOffload;
      break;
    case Treatment::kSave:
      break;
  }
  return Keep::kOutputs;
}

PreparedRegionType prepare(const RegionType& type, Schedule schedule) {
  PreparedRegionType prepared;
  prepared.extent = replay_extent(type, schedule);
  prepared.early_stop = type.early_stop;
  for (const PlannedOp& op : type.ops) {
    const OpFacts* facts = find_facts(op.name);
    if (facts == nullptr) {
      throw StreamMismatch("plan names op " + op.name + " (scope " + op.scope +
                           "), which this build of LibTorch does not have; was the plan made for "
                           "another version, or is the library that registers the op not linked?");
    }
    if (facts->collective == CollectivePart::kStartWithHandle) {
      throw Refused("plan has " + op.name + " (scope " + op.scope +
                    ") in a region: it returns before it is done, and no op tells when; call the "
                    "functional collective (_c10d_functional) and wait_tensor in its place, or "
                    "keep it outside regions");
    }
    prepared.ops.push_back(facts);
    prepared.keep.push_back(keep_for(op));
  }
  prepared.offload_inputs = type.offload_inputs;
  for (const DemandStep& step : type.demand_steps) prepared.demand_steps[step.pack] = &step;
  return prepared;
}

}  // namespace

Checkpoint::Prepared::Prepared(Plan given_plan, Schedule given_schedule,
                               OutsideCheck given_outside_check)
    : plan(std::move(given_plan)), schedule(given_schedule), outside_check(given_outside_check) {
  for (const RegionType& type : plan.types) types.push_back(prepare(type, schedule));
  offloads = std::any_of(plan.types.begin(), plan.types.end(), offloads_anything);
  for (std::size_t i = 0; i < plan.regions.size(); ++i) {
    region_by_first_scope[plan.regions[i].first_scope] = i;
  }
}

Checkpoint::Checkpoint(const Plan& plan, Schedule schedule, OutsideCheck outside_check)
    : prepared_(std::make_shared<const Prepared>(plan, schedule, outside_check)) {}
Checkpoint::~Checkpoint() = default;

bool Checkpoint::offloads() const { return prepared_->offloads; }
HostMemory Checkpoint::host_memory() const { return prepared_->host.memory(); }
void Checkpoint::restart_host_counts() const { prepared_->host.restart_counts(); }
void Checkpoint::observe_moves(MoveObserver* observer) const { prepared_->host.observe(observer); }

}  // namespace rematch
