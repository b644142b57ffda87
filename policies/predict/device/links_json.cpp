#include "policies/predict/device/links_json.h"

#include "policies/base/json.h"
#include "policies/base/schema.h"

namespace rematch {
namespace {

Json curve_to_json(const LinkCurve& curve) {
  Json points = Json::array();
  for (const LinkPoint& point : curve) {
    points.push_back({{"bytes", point.bytes.count}, {"median_ns", point.median.count()}});
  }
  return points;
}

LinkCurve curve_from_json(const JsonField& field) {
  LinkCurve curve;
  for (const JsonField& point : field.elements()) {
    const JsonField bytes = point.at("bytes");
    const JsonField median = point.at("median_ns");
    const std::int64_t least = curve.empty() ? 1 : curve.back().bytes.count + 1;
    if (bytes.count() < least) {
      bytes.fail("is not more than the point before; points stand by their bytes, from 1 on");
    }
    if (median.count() == 0) median.fail("is 0, and everything takes time");
    curve.push_back({Bytes{bytes.count()}, std::chrono::nanoseconds(median.count())});
  }
  if (curve.empty()) field.fail("is empty; at least one point is needed");
  return curve;
}

Json group_to_json(const LinkGroup& group) {
  Json collectives = Json::object();
  for (const auto& [kind, curve] : group.collectives) {
    collectives[std::string(to_string(kind))] = curve_to_json(curve);
  }
  return {{"name", group.name},
          {"num_ranks", group.num_ranks},
          {"collectives", std::move(collectives)}};
}

LinkGroup group_from_json(const JsonField& field) {
  LinkGroup group;
  group.name = field.at("name").string();
  group.num_ranks = field.at("num_ranks").integer32(2);
  for (const auto& [name, curve] : field.at("collectives").members()) {
    const auto kind = collective_kind_from_string(*name);
    if (!kind) curve.fail("is of an unknown collective");
    group.collectives[*kind] = curve_from_json(curve);
  }
  return group;
}

}  // namespace

Json links_to_json(const LinkProfile& links) {
  Json json = {
      {"schema", schema_name(kLinksSchema)},
      {"device", links.device},
      {"transport", links.transport},
      {"layout", links.layout},
      {"world", links.world},
      {"num_steps", links.num_steps},
      {"git_commit", nullptr},
      {"git_dirty", nullptr},
      {"groups", Json::array()},
      {"host",
       {{"to_host", curve_to_json(links.to_host)}, {"to_device", curve_to_json(links.to_device)}}}};
  if (links.git_commit) json["git_commit"] = *links.git_commit;
  if (links.git_dirty) json["git_dirty"] = *links.git_dirty;
  for (const LinkGroup& group : links.groups) json["groups"].push_back(group_to_json(group));
  return json;
}

LinkProfile links_from_json(const Json& json) {
  require_schema(json, kLinksSchema.kind);
  const JsonField root(json);
  LinkProfile links;
  links.device = root.at("device").string();
  links.transport = root.at("transport").string();
  links.layout = root.at("layout").string();
  links.world = root.at("world").integer32(1);
  links.num_steps = root.at("num_steps").integer32(1);
  if (const auto commit = root.find("git_commit"); commit && !commit->is_null()) {
    links.git_commit = commit->string();
  }
  if (const auto dirty = root.find("git_dirty"); dirty && !dirty->is_null()) {
    links.git_dirty = dirty->boolean();
  }
  for (const JsonField& group : root.at("groups").elements()) {
    links.groups.push_back(group_from_json(group));
  }
  const JsonField host = root.at("host");
  links.to_host = curve_from_json(host.at("to_host"));
  links.to_device = curve_from_json(host.at("to_device"));
  return links;
}

}  // namespace rematch
