// C functions that plan a compiled model's joint graph.
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/python/c_call.h"
#include "harness/python/c_surface.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/joint/fewest_saved.h"
#include "policies/joint/graph_option.h"
#include "policies/joint/graph_schedule.h"
#include "policies/joint/joint_graph.h"

using namespace rematch;
using namespace rematch::c_call;

struct RematchJoint {
  explicit RematchJoint(JointGraph joint) : graph(std::move(joint)) {}

  // Made at the first use, because a graph whose plan is known does not need it.
  FewestSaved& fewest() {
    if (!fewest_saved) fewest_saved = std::make_unique<FewestSaved>(graph);
    return *fewest_saved;
  }

  const JointGraph graph;
  std::unique_ptr<FewestSaved> fewest_saved;
};

namespace rematch::c_call {
namespace {

Fusion fusion_of(int fuses) { return fuses != 0 ? Fusion::kElementwise : Fusion::kNone; }

NodeIds ids_at(const JointGraph& graph, const std::int32_t* indices, int count) {
  NodeIds ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int position = 0; position < count; ++position) {
    if (!graph.nodes.contains(NodeId(indices[position]))) {
      throw std::invalid_argument("the joint graph has no node " +
                                  std::to_string(indices[position]));
    }
    ids.emplace_back(indices[position]);
  }
  return ids;
}

Json json_of(const NodeIds& ids) {
  Json json = Json::array();
  for (const NodeId id : ids) json.push_back(id.index);
  return json;
}

Json json_of(const GraphOption& option) {
  const GraphPeaks& peaks = option.peaks;
  return {{"saved", json_of(option.saved)},
          {"by_layer", option.by_layer},
          {"peaks",
           {{"forward", peaks.forward.count},
            {"held", peaks.held.count},
            {"backward", peaks.backward.count},
            {"returned", peaks.returned.count},
            {"gradients", peaks.gradients.count},
            {"outside", peaks.outside.count}}},
          {"added_ns", option.added.count()},
          {"num_recomputed", option.num_recomputed}};
}

}  // namespace
}  // namespace rematch::c_call

extern "C" {

RematchJoint* rematch_make_joint(const char* joint_json) {
  return call_or<RematchJoint*>(nullptr, [&] {
    const Json json = parse_json(joint_json, "joint graph");
    return new RematchJoint(joint_graph_from_json(JsonField(json)));
  });
}

void rematch_free_joint(RematchJoint* joint) { delete joint; }

const char* rematch_fewest_saved(RematchJoint* joint, const std::int32_t* recomputed,
                                 int num_recomputed, std::int64_t shift,
                                 std::int64_t traffic_per_byte) {
  return call_or<const char*>(nullptr, [&] {
    CutAim aim{.shift = shift};
    if (traffic_per_byte >= 0) aim.traffic_per_byte = traffic_per_byte;
    const NodeIds ops = ids_at(joint->graph, recomputed, num_recomputed);
    return as_text(json_of(joint->fewest().values(ops, aim)));
  });
}

const char* rematch_joint_option(RematchJoint* joint, const std::int32_t* offered, int num_offered,
                                 int fuses) {
  return call_or<const char*>(nullptr, [&] {
    const NodeIds ids = ids_at(joint->graph, offered, num_offered);
    return as_text(json_of(option_of(joint->graph, ids, fusion_of(fuses))));
  });
}

const char* rematch_joint_schedule(RematchJoint* joint, const std::int32_t* offered,
                                   int num_offered, int by_layer, int fuses) {
  return call_or<const char*>(nullptr, [&] {
    const NodeIds ids = ids_at(joint->graph, offered, num_offered);
    const GraphSchedule schedule = schedule_of(joint->graph, ids, fusion_of(fuses));
    const bool is_grouped = by_layer != 0 && schedule.by_layer.has_value();
    return as_text({{"forward", json_of(schedule.forward)},
                    {"backward", json_of(is_grouped ? *schedule.by_layer : schedule.by_first_use)},
                    {"saved", json_of(schedule.saved)},
                    {"recomputed", json_of(schedule.recomputed)}});
  });
}

}  // extern "C"
