#include "policies/trace/profile_json.h"

#include <algorithm>
#include <stdexcept>

#include "policies/trace/profile_fields.h"
#include "policies/trace/spans.h"

namespace rematch {
namespace {

// The maximum number of ops in a file. A step of the largest models has about 100,000.
constexpr std::size_t kMaxOps = 8'000'000;

OpFigures span_of(const OpFigures& all, const TypedSpan& place) {
  const auto slice = [&](const auto& list) {
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(place.first);
    return std::decay_t<decltype(list)>(first, first + static_cast<std::ptrdiff_t>(place.length));
  };
  OpFigures span{slice(all.times), std::nullopt};
  if (all.temporary) span.temporary = slice(*all.temporary);
  if (all.kernels) span.kernels = slice(*all.kernels);
  return span;
}

Json pass_to_json(const OpFigures& all, const std::vector<TypedSpan>& spans) {
  std::vector<OpFigures> types;
  Json order = Json::array();
  for (const TypedSpan& place : spans) {
    if (place.length == 0) continue;
    order.push_back(add_once(types, span_of(all, place)));
  }
  return {{"types", to_value(types)}, {"spans", std::move(order)}};
}

void append(OpFigures& all, const OpFigures& span, const JsonField& field) {
  if (all.times.size() + span.times.size() > kMaxOps) {
    field.fail("has more than " + std::to_string(kMaxOps) + " ops; no training step is that large");
  }
  const auto append_list = [&](auto& list, const auto& part, const char* key) {
    if (!all.times.empty() && list.has_value() != part.has_value()) {
      field.fail(std::string("has ") + key + " in only some of its types");
    }
    if (!part) return;
    if (!list) list.emplace();
    list->insert(list->end(), part->begin(), part->end());
  };
  append_list(all.temporary, span.temporary, "temporary_bytes");
  append_list(all.kernels, span.kernels, "kernels");
  all.times.insert(all.times.end(), span.times.begin(), span.times.end());
}

OpFigures pass_from_json(const JsonField& field) {
  std::vector<OpFigures> types;
  for (const JsonField& type : field.at("types").elements()) {
    read_value(type, types.emplace_back());
    if (types.back().times.empty()) type.fail("has no op");
  }
  OpFigures all;
  for (const JsonField& span : field.at("spans", "segments").elements()) {
    if (types.empty()) span.fail("refers to a type, but the list of types is empty");
    const int type = span.integer32(0, static_cast<std::int32_t>(types.size()) - 1);
    append(all, types[static_cast<std::size_t>(type)], span);
  }
  return all;
}

}  // namespace

void read_value(const JsonField& field, OpFigures& figures) {
  read_fields(field, figures);
  const auto require_size = [&](const char* key, const auto& list) {
    if (!list || list->size() == figures.times.size()) return;
    field.at(key).fail("has " + std::to_string(list->size()) + " entries for " +
                       std::to_string(figures.times.size()) + " times");
  };
  require_size("temporary_bytes", figures.temporary);
  require_size("kernels", figures.kernels);
}

Json profile_to_json(const Profile& profile, const Trace& trace) {
  if (const auto problem = profile_problem(profile, trace)) throw std::invalid_argument(*problem);
  const SpannedTrace spanned = cut_into_spans(trace);
  Json json = document_of(kProfileSchema, profile);
  json["forward"] =
      pass_to_json({profile.forward, profile.forward_temporary, profile.forward_kernels},
                   forward_spans(spanned));
  json["backward"] =
      pass_to_json({profile.backward, profile.backward_temporary}, backward_spans(spanned));
  return json;
}

Profile profile_from_json(const Json& json) {
  require_schema(json, kProfileSchema.kind);
  const JsonField root(json);
  Profile profile;
  read_fields(root, profile);
  // a file must have one of the two hashes
  if (profile.ops_sha256.empty()) root.at("trace_sha256");
  if (profile.measured_layers) root.at("measured_layers").integer32(1);
  OpFigures forward = pass_from_json(root.at("forward"));
  OpFigures backward = pass_from_json(root.at("backward"));
  profile.forward = std::move(forward.times);
  profile.forward_temporary = std::move(forward.temporary);
  profile.forward_kernels = std::move(forward.kernels);
  profile.backward = std::move(backward.times);
  profile.backward_temporary = std::move(backward.temporary);
  return profile;
}

}  // namespace rematch
