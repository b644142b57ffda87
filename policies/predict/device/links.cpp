#include "policies/predict/device/links.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "policies/base/json.h"
#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

nanoseconds stretched(nanoseconds time, double ratio) {
  return nanoseconds(std::llround(static_cast<double>(time.count()) * ratio));
}

double ratio_of(Bytes part, Bytes whole) {
  return static_cast<double>(part.count) / static_cast<double>(whole.count);
}

void take_slower(LinkCurve& curve, const LinkCurve& other) {
  const bool is_same =
      std::equal(curve.begin(), curve.end(), other.begin(), other.end(),
                 [](const LinkPoint& one, const LinkPoint& two) { return one.bytes == two.bytes; });
  if (!is_same) throw std::invalid_argument("the ranks measured links at different sizes");
  for (std::size_t i = 0; i < curve.size(); ++i) {
    curve[i].median = std::max(curve[i].median, other[i].median);
  }
}

void take_slower(LinkGroup& group, const LinkGroup& other) {
  if (group.name != other.name || group.collectives.size() != other.collectives.size()) {
    throw std::invalid_argument("the ranks measured links of different groups");
  }
  for (auto& [kind, curve] : group.collectives) take_slower(curve, other.collectives.at(kind));
}

const LinkGroup* find_group(const LinkProfile& links, const std::string& name) {
  const auto found = std::find_if(links.groups.begin(), links.groups.end(),
                                  [&](const LinkGroup& group) { return group.name == name; });
  return found == links.groups.end() ? nullptr : &*found;
}

// Returns the group and kind of every collective that the step issues.
std::set<std::pair<std::string, CollectiveKind>> collectives_in(const Trace& trace) {
  std::set<std::pair<std::string, CollectiveKind>> found;
  const auto add = [&](const std::string& op, const std::string& group) {
    if (const auto kind = collective_kind(op)) found.emplace(group, *kind);
  };
  for (const TracedOp& op : trace.ops) add(op.name, op.group);
  for (const BackwardEvent& event : trace.backward) add(event.op, event.group);
  for (const TracedCollective& sum : trace.gradient_sums) add(sum.op, sum.group);
  return found;
}

std::int64_t ranks_in(const Trace& trace, const std::string& group) {
  const auto found = trace.dimensions.find(group);
  return found == trace.dimensions.end() ? 0 : found->second;
}

// Returns a layout that has the group, in the syntax of --parallel.
std::string layout_with(const Trace& trace, const std::string& group) {
  if (ranks_in(trace, "expert_fsdp") == 0) {
    return group + "=" + std::to_string(ranks_in(trace, group));
  }
  return "fsdp=" + std::to_string(ranks_in(trace, "fsdp")) +
         ",ep=" + std::to_string(ranks_in(trace, "ep"));
}

double bytes_per_second(const LinkPoint& point) {
  constexpr double kNanosecondsInSecond = 1e9;
  return static_cast<double>(point.bytes.count) * kNanosecondsInSecond /
         static_cast<double>(point.median.count());
}

}  // namespace

nanoseconds time_at(const LinkCurve& curve, Bytes bytes) {
  const auto above = std::find_if(curve.begin(), curve.end(),
                                  [&](const LinkPoint& point) { return point.bytes >= bytes; });
  if (above == curve.begin()) return above->median;
  const LinkPoint& below = *(above - 1);
  if (above == curve.end()) return stretched(below.median, ratio_of(bytes, below.bytes));
  const double share = ratio_of(bytes - below.bytes, above->bytes - below.bytes);
  return below.median + stretched(above->median - below.median, share);
}

LinkProfile slowest_of(const std::vector<LinkProfile>& ranks) {
  LinkProfile slowest = ranks.at(0);
  for (const LinkProfile& rank : ranks) {
    if (rank.groups.size() != slowest.groups.size()) {
      throw std::invalid_argument("the ranks measured links of different groups");
    }
    for (std::size_t i = 0; i < rank.groups.size(); ++i) {
      take_slower(slowest.groups[i], rank.groups[i]);
    }
    take_slower(slowest.to_host, rank.to_host);
    take_slower(slowest.to_device, rank.to_device);
  }
  return slowest;
}

bool has_collectives(const Trace& trace) { return !collectives_in(trace).empty(); }

std::optional<std::string> links_problem(const LinkProfile& links, const Trace& trace) {
  const auto collectives = collectives_in(trace);
  if (collectives.empty()) return "the step has no collectives, so measured links have no effect";
  for (const auto& [name, kind] : collectives) {
    const std::int64_t num_ranks = ranks_in(trace, name);
    const LinkGroup* group = find_group(links, name);
    const std::string wanted = name + "=" + std::to_string(num_ranks);
    if (group == nullptr || group->num_ranks != num_ranks) {
      return "the step has collectives over " + wanted + ", but the links were measured for " +
             (links.layout.empty() ? "one rank" : links.layout) +
             "; measure them with rematch profile --links --parallel " + layout_with(trace, name);
    }
    if (!group->collectives.contains(kind)) {
      return "the step has " + std::string(to_string(kind)) + " over " + wanted +
             ", which was not measured; measure the links with this build";
    }
  }
  return std::nullopt;
}

nanoseconds measured_time(const LinkProfile& links, const TracedCollective& collective) {
  const LinkGroup* group = find_group(links, collective.group);
  const auto kind = collective_kind(collective.op);
  if (group == nullptr || !kind || !group->collectives.contains(*kind)) {
    throw std::invalid_argument("links without " + collective.op + " over " + collective.group);
  }
  return time_at(group->collectives.at(*kind), collective.bytes);
}

HostLink host_link_of(const LinkProfile& links, const std::string& source) {
  return {bytes_per_second(links.to_host.back()), bytes_per_second(links.to_device.back()), source};
}

void hide_behind_blocks(const Trace& trace, const Profile& profile, HostLink& link) {
  IdTable<ScopeId, OptionalIndex> block_of(trace.scopes.size());
  for (const ScopeId scope : trace.scopes.ids()) {
    if (const auto parent = trace.scopes[scope].parent) block_of[scope] = block_of[*parent];
    for (std::size_t block = 0; block < trace.blocks.size(); ++block) {
      if (trace.blocks[block].scope == scope) block_of[scope] = static_cast<std::int32_t>(block);
    }
  }
  const auto block_at = [&](std::optional<ScopeId> scope) {
    return scope ? block_of[*scope] : OptionalIndex();
  };
  std::vector<nanoseconds> forward(trace.blocks.size());
  std::vector<nanoseconds> backward(trace.blocks.size());
  for (const OpId op : trace.ops.ids()) {
    const OptionalIndex block = block_at(trace.ops[op].scope);
    if (block.has_value()) forward[*block] += profile.forward[op];
  }
  std::size_t backward_op = 0;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    const OptionalIndex block = block_at(event.scope);
    if (block.has_value()) backward[*block] += profile.backward[backward_op];
    ++backward_op;
  }
  link.copies_in_step = micro_batches(trace);
  if (forward.empty()) return;
  link.hidden_out = *std::min_element(forward.begin(), forward.end());
  link.hidden_back = *std::min_element(backward.begin(), backward.end());
}

std::string links_in_words(const LinkProfile& links) {
  if (links.layout.empty()) return "one rank, measured on " + links.device;
  return links.layout + ", measured on " + links.device + " over " + links.transport;
}

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
      bytes.fail(
          "is not larger than the previous point; points must be sorted by bytes, starting at 1 or "
          "more");
    }
    if (median.count() == 0) median.fail("is 0; a time must be above 0");
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
    const auto kind = from_string<CollectiveKind>(*name);
    if (!kind) curve.fail("names an unknown collective");
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
