// C functions that plan a compiled model's joint graph.
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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
  RematchJoint(JointGraph joint, Fusion of_backend, NodeIds free_nodes,
               std::vector<CutAim> cut_aims)
      : graph(std::move(joint)),
        fusion(of_backend),
        free(std::move(free_nodes)),
        aims(std::move(cut_aims)) {}

  // Returns the option that saves nodes of `offered`. Different plans often save the same values,
  // so options are kept.
  const GraphOption& option(NodeIds offered) {
    auto known = options.find(offered);
    if (known == options.end()) {
      GraphOption made = option_of(graph, offered, fusion);
      known = options.emplace(std::move(offered), std::move(made)).first;
    }
    return known->second;
  }

  // Returns the values to save for an aim.
  NodeIds values(const NodeIds& recomputed, const CutAim& aim) {
    if (!fewest_saved) fewest_saved = std::make_unique<FewestSaved>(graph);
    NodeIds saved = free;
    for (const NodeId id : fewest_saved->values(recomputed, aim)) saved.push_back(id);
    return saved;
  }

  const JointGraph graph;
  const Fusion fusion;
  const NodeIds free;  // what forward may save without memory of its own
  const std::vector<CutAim> aims;
  std::map<NodeIds, GraphOption> options;
  std::unique_ptr<FewestSaved> fewest_saved;  // made at the first use
};

namespace rematch::c_call {
namespace {

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

CutAim aim_of(const JsonField& field) {
  CutAim aim{.shift = field.at("shift").integer()};
  const JsonField traffic = field.at("traffic_per_byte");
  if (!traffic.is_null()) aim.traffic_per_byte = traffic.count();
  return aim;
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
    const JsonField field(json);
    JointGraph graph = joint_graph_from_json(field);
    std::vector<CutAim> aims;
    for (const JsonField& aim : field.at("aims").elements()) aims.push_back(aim_of(aim));
    NodeIds free = node_ids_from_json(field.at("free"), graph.nodes.size());
    const Fusion fusion = field.at("fuses").boolean() ? Fusion::kElementwise : Fusion::kNone;
    return new RematchJoint(std::move(graph), fusion, std::move(free), std::move(aims));
  });
}

void rematch_free_joint(RematchJoint* joint) { delete joint; }

const char* rematch_joint_options(RematchJoint* joint, const std::int32_t* recomputed,
                                  int num_recomputed) {
  return call_or<const char*>(nullptr, [&] {
    const NodeIds ops = ids_at(joint->graph, recomputed, num_recomputed);
    Json json = Json::array();
    for (const CutAim& aim : joint->aims) {
      json.push_back(json_of(joint->option(joint->values(ops, aim))));
    }
    return as_text(json);
  });
}

const char* rematch_joint_option(RematchJoint* joint, const std::int32_t* offered,
                                 int num_offered) {
  return call_or<const char*>(nullptr, [&] {
    return as_text(json_of(joint->option(ids_at(joint->graph, offered, num_offered))));
  });
}

const char* rematch_joint_schedule(RematchJoint* joint, const std::int32_t* offered,
                                   int num_offered, int by_layer) {
  return call_or<const char*>(nullptr, [&] {
    const NodeIds ids = ids_at(joint->graph, offered, num_offered);
    const GraphSchedule schedule = schedule_of(joint->graph, ids, joint->fusion);
    const bool is_grouped = by_layer != 0 && schedule.by_layer.has_value();
    return as_text({{"forward", json_of(schedule.forward)},
                    {"backward", json_of(is_grouped ? *schedule.by_layer : schedule.by_first_use)},
                    {"saved", json_of(schedule.saved)},
                    {"recomputed", json_of(schedule.recomputed)}});
  });
}

}  // extern "C"
