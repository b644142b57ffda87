#include "policies/trace/profile_json.h"

#include <algorithm>
#include <stdexcept>

#include "policies/base/json.h"
#include "policies/base/record_fields.h"
#include "policies/trace/spans.h"

namespace rematch {
namespace {

// A step of the largest models has some 100,000 ops.
constexpr std::size_t kMostOps = 8'000'000;

using Times = std::vector<Profile::Duration>;
using Temporaries = std::optional<std::vector<Bytes>>;
using Kernels = std::optional<std::vector<std::int32_t>>;

// Times, and bytes and kernels where they were measured, of a span or of the whole pass.
struct Figures {
  Times times;
  Temporaries temporary;
  Kernels kernels = std::nullopt;
  bool operator==(const Figures&) const = default;
};

Json figures_to_json(const Figures& figures) {
  Json json = {{"times_ns", Json::array()}, {"temporary_bytes", nullptr}};
  for (const Profile::Duration time : figures.times) json["times_ns"].push_back(time.count());
  if (figures.temporary) {
    json["temporary_bytes"] = Json::array();
    for (const Bytes bytes : *figures.temporary) json["temporary_bytes"].push_back(bytes.count);
  }
  if (figures.kernels) json["kernels"] = *figures.kernels;
  return json;
}

Figures figures_from_json(const JsonField& field) {
  Figures figures;
  for (const JsonField& time : field.at("times_ns").elements()) {
    figures.times.emplace_back(time.count());
  }
  const auto require_size = [&](const JsonField& list, std::size_t size) {
    if (size == figures.times.size()) return;
    list.fail("has " + std::to_string(size) + " entries beside " +
              std::to_string(figures.times.size()) + " times");
  };
  if (const JsonField temporary = field.at("temporary_bytes"); !temporary.is_null()) {
    figures.temporary.emplace();
    for (const JsonField& bytes : temporary.elements()) {
      figures.temporary->push_back({bytes.count()});
    }
    require_size(temporary, figures.temporary->size());
  }
  if (const auto kernels = field.find("kernels")) {
    figures.kernels.emplace();
    for (const JsonField& count : kernels->elements()) {
      figures.kernels->push_back(count.integer32(0));
    }
    require_size(*kernels, figures.kernels->size());
  }
  return figures;
}

Figures span_of(const Figures& all, std::size_t first, std::size_t count) {
  const auto slice = [&](const auto& list) {
    return std::decay_t<decltype(list)>(list.begin() + first, list.begin() + first + count);
  };
  Figures span{slice(all.times), std::nullopt};
  if (all.temporary) span.temporary = slice(*all.temporary);
  if (all.kernels) span.kernels = slice(*all.kernels);
  return span;
}

Json pass_to_json(const Figures& all, const std::vector<std::size_t>& lengths) {
  std::vector<Figures> types;
  Json order = Json::array();
  std::size_t first = 0;
  for (const std::size_t length : lengths) {
    Figures span = span_of(all, first, length);
    first += length;
    const auto found = std::find(types.begin(), types.end(), span);
    order.push_back(found - types.begin());
    if (found == types.end()) types.push_back(std::move(span));
  }
  Json json = {{"types", Json::array()}, {"spans", std::move(order)}};
  for (const Figures& type : types) json["types"].push_back(figures_to_json(type));
  return json;
}

void append(Figures& all, const Figures& span, const JsonField& field) {
  if (all.times.size() + span.times.size() > kMostOps) {
    field.fail("has more than " + std::to_string(kMostOps) + " ops; no training step has");
  }
  const auto append_list = [&](auto& list, const auto& part, const char* key) {
    if (!all.times.empty() && list.has_value() != part.has_value()) {
      field.fail(std::string("has ") + key + " in some of its types only");
    }
    if (!part) return;
    if (!list) list.emplace();
    list->insert(list->end(), part->begin(), part->end());
  };
  append_list(all.temporary, span.temporary, "temporary_bytes");
  append_list(all.kernels, span.kernels, "kernels");
  all.times.insert(all.times.end(), span.times.begin(), span.times.end());
}

Figures pass_from_json(const JsonField& field) {
  std::vector<Figures> types;
  for (const JsonField& type : field.at("types").elements()) {
    types.push_back(figures_from_json(type));
    if (types.back().times.empty()) type.fail("has no op");
  }
  Figures all;
  for (const JsonField& span : field.at("spans", "segments").elements()) {
    if (types.empty()) span.fail("refers to a type, but the list of types is empty");
    const int type = span.integer32(0, static_cast<std::int32_t>(types.size()) - 1);
    append(all, types[static_cast<std::size_t>(type)], span);
  }
  return all;
}

std::vector<std::size_t> forward_lengths(const SpannedTrace& spanned) {
  std::vector<std::size_t> lengths;
  for (const TraceSpan& span : spanned.spans) {
    lengths.push_back(spanned.types[static_cast<std::size_t>(span.type)].ops.size());
  }
  std::erase(lengths, 0U);
  return lengths;
}

std::vector<std::size_t> backward_lengths(const SpannedTrace& spanned) {
  std::vector<std::size_t> lengths;
  for (const BackwardRun& run : spanned.backward) {
    const auto& events = spanned.backward_types[static_cast<std::size_t>(run.type)];
    lengths.push_back(static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(),
        [](const BackwardEvent& event) { return event.kind == BackwardEvent::Kind::kOp; })));
  }
  std::erase(lengths, 0U);
  return lengths;
}

}  // namespace

Json to_value(ProfileSource source) { return to_string(source); }

void read_value(const JsonField& field, ProfileSource& source) {
  constexpr std::array kSources = {ProfileSource::kMeasured, ProfileSource::kRoofline};
  source = read_word(field, kSources, "not a source of times");
}

Json profile_to_json(const Profile& profile, const Trace& trace) {
  if (const auto problem = profile_problem(profile, trace)) throw std::invalid_argument(*problem);
  const SpannedTrace spanned = cut_into_spans(trace);
  Json json = {{"schema", schema_name(kProfileSchema)},
               {"model", profile.model},
               {"dimensions", profile.dimensions},
               {"dtype", profile.dtype},
               {"trace_sha256", profile.trace_sha256},
               {"device", profile.device},
               {"source", to_string(profile.source)},
               {"num_steps", profile.num_steps},
               {"optimizer_ns", profile.optimizer.count()},
               {"forward_between_ops_ns", profile.forward_between_ops.count()},
               {"backward_between_ops_ns", profile.backward_between_ops.count()},
               {"forward",
                pass_to_json({profile.forward, profile.forward_temporary, profile.forward_kernels},
                             forward_lengths(spanned))},
               {"backward", pass_to_json({profile.backward, profile.backward_temporary},
                                         backward_lengths(spanned))}};
  if (profile.measured_layers) json["measured_layers"] = *profile.measured_layers;
  if (!profile.links.empty()) json["links"] = profile.links;
  if (profile.gradient_sums.count() != 0) json["gradient_sums_ns"] = profile.gradient_sums.count();
  return json;
}

Profile profile_from_json(const Json& json) {
  require_schema(json, kProfileSchema.kind);
  const JsonField root(json);
  const auto duration = [&](std::string_view key) {
    return Profile::Duration(root.at(key).count());
  };
  Profile profile;
  profile.model = root.at("model").string();
  const JsonField dimensions = root.at("dimensions");
  dimensions.require_object();
  for (const auto& [name, value] : dimensions.json().items()) {
    profile.dimensions[name] = dimensions.at(name).integer();
  }
  profile.dtype = root.at("dtype").string();
  if (const auto ops = root.find("ops_sha256")) profile.ops_sha256 = ops->string();
  if (profile.ops_sha256.empty() || root.find("trace_sha256")) {
    profile.trace_sha256 = root.at("trace_sha256").string();
  }
  profile.device = root.at("device").string();
  read_value(root.at("source"), profile.source);
  profile.num_steps = root.at("num_steps").integer32(0);
  if (const auto layers = root.find("measured_layers"))
    profile.measured_layers = layers->integer32(1);
  profile.optimizer = duration("optimizer_ns");
  if (root.find("gradient_sums_ns")) profile.gradient_sums = duration("gradient_sums_ns");
  if (const auto links = root.find("links")) profile.links = links->string();
  profile.forward_between_ops = duration("forward_between_ops_ns");
  profile.backward_between_ops = duration("backward_between_ops_ns");
  Figures forward = pass_from_json(root.at("forward"));
  Figures backward = pass_from_json(root.at("backward"));
  profile.forward = std::move(forward.times);
  profile.forward_temporary = std::move(forward.temporary);
  profile.forward_kernels = std::move(forward.kernels);
  profile.backward = std::move(backward.times);
  profile.backward_temporary = std::move(backward.temporary);
  return profile;
}

}  // namespace rematch
