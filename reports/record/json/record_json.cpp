#include "reports/record/json/record_json.h"

#include <algorithm>
#include <future>
#include <thread>
#include <unordered_map>
#include <utility>

#include "policies/base/field_value.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/point_json.h"
#include "reports/record/point_origins.h"
#include "reports/record/report.h"

namespace rematch {
namespace {

void write_provenance(Json& json, const Provenance& provenance) {
  write_fields(json, provenance);
  json["fingerprint"] = fingerprint(provenance.environment);
}

Json sources_to_json(const std::vector<ReportSource>& sources) {
  Json json = Json::array();
  for (const ReportSource& source : sources) {
    Json& entry = json.emplace_back(Json::object());
    write_provenance(entry, source.provenance);
    entry["points"] = source.points;
  }
  return json;
}

// Reads the parts of a merged report, one for each command. Every point must belong to exactly one
// part.
std::vector<ReportSource> sources_from_json(const JsonField& field, std::size_t num_points) {
  std::vector<ReportSource> sources;
  std::vector<bool> taken(num_points, false);
  for (const JsonField& source : field.elements()) {
    ReportSource& entry = sources.emplace_back();
    read_value(source, entry.provenance);
    for (const JsonField& index : source.at("points").elements()) {
      const auto last = static_cast<std::int64_t>(num_points) - 1;
      const auto point = static_cast<std::size_t>(index.integer(0, last));
      if (taken[point]) index.fail("belongs to two sources");
      taken[point] = true;
      entry.points.push_back(point);
    }
  }
  if (std::find(taken.begin(), taken.end(), false) != taken.end()) {
    field.fail("does not name a source for every point");
  }
  return sources;
}

// Rejects a point that appears twice. Commands pair points by identity, so they would ignore one of
// the two. A merged report may have one point per environment.
void require_each_once(const Report& report) {
  const PointOrigins origins(report);
  std::unordered_map<std::string, std::vector<std::size_t>> known;
  for (std::size_t index = 0; index < report.points.size(); ++index) {
    const PointRecord& point = report.points[index];
    std::vector<std::size_t>& alike = known[point.policy + " " + point.identity.plan_sha256];
    for (const std::size_t other : alike) {
      const PointRecord& earlier = report.points[other];
      if (!(earlier.identity == point.identity) ||
          origins.fingerprint_of(earlier) != origins.fingerprint_of(point)) {
        continue;
      }
      throw FormatError("points[" + std::to_string(index) + "]: repeats points[" +
                        std::to_string(other) + "], " + point.policy +
                        "; a report has each point once");
    }
    alike.push_back(index);
  }
}

// Returns the unknown keys outside the points. Each point keeps its own unknown keys.
std::map<std::string, std::string> unknown_of_frame(const Json& source,
                                                    const Provenance& provenance,
                                                    std::initializer_list<const char*> others) {
  Json written;
  write_provenance(written, provenance);
  written["schema"] = nullptr;
  for (const char* name : others) written[name] = nullptr;
  return unknown_members(source, written);
}

// Builds the report from a document whose points have been read.
Report with_frame(const Json& json, std::vector<PointRecord> points) {
  const JsonField field(json);
  Report report;
  read_value(field, report.provenance);
  report.points = std::move(points);
  if (const auto repeats = field.find("reference_repeats")) read_value(*repeats, report.repeats);
  if (const auto unmeasured = field.find("unmeasured")) read_value(*unmeasured, report.unmeasured);
  if (const auto planned = field.find("planned")) read_value(*planned, report.planned);
  if (const auto sources = field.find("sources")) {
    report.sources = sources_from_json(*sources, report.points.size());
  }
  require_each_once(report);
  report.unknown = unknown_of_frame(
      json, report.provenance, {"points", "planned", "sources", "reference_repeats", "unmeasured"});
  return report;
}

// Writes everything except the points. The last member is an empty list of points.
Json frame_to_json(const Report& report) {
  Json json = {{"schema", schema_name(kReportSchema)}};
  write_provenance(json, report.provenance);
  if (!report.planned.empty()) json["planned"] = to_value(report.planned);
  if (!report.sources.empty()) json["sources"] = sources_to_json(report.sources);
  add_members(json, report.unknown);
  if (!report.unmeasured.empty()) json["unmeasured"] = to_value(report.unmeasured);
  if (!report.repeats.empty()) json["reference_repeats"] = to_value(report.repeats);
  json["points"] = Json::array();
  return json;
}

constexpr int kIndent = 2;
constexpr std::size_t kMinPointsOfAThread = 64;
constexpr std::size_t kMaxTextThreads = 8;

// Appends an element of the list of points, with the indentation that dump(2) would give it.
// Newlines inside strings are escaped, so every newline ends a line.
void add_element(const Json& element, std::string& text) {
  constexpr std::string_view kMargin = "\n    ";
  text.append(kMargin);
  const std::string lines = element.dump(kIndent);
  for (std::size_t from = 0; from < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', from), lines.size());
    text.append(lines, from, end - from);
    if (end < lines.size()) text.append(kMargin);
    from = end + 1;
  }
}

std::string points_text(const std::vector<PointRecord>& points, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t index = from; index < to; ++index) {
    if (index > 0) text.push_back(',');
    add_element(point_to_json(points[index]), text);
  }
  return text;
}

// Converts points to text in parts, each on its own thread.
std::string all_points_text(const std::vector<PointRecord>& points) {
  const std::size_t num_cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t num_parts = std::clamp<std::size_t>(points.size() / kMinPointsOfAThread, 1,
                                                        std::min(num_cores, kMaxTextThreads));
  const auto start_of = [&](std::size_t part) { return part * points.size() / num_parts; };
  std::vector<std::future<std::string>> parts;
  for (std::size_t part = 1; part < num_parts; ++part) {
    parts.push_back(std::async(std::launch::async, [&points, &start_of, part] {
      return points_text(points, start_of(part), start_of(part + 1));
    }));
  }
  std::string text = points_text(points, 0, start_of(1));
  for (std::future<std::string>& part : parts) text += part.get();
  return text;
}

}  // namespace

Json report_to_json(const Report& report) {
  Json json = frame_to_json(report);
  for (const PointRecord& point : report.points) json["points"].push_back(point_to_json(point));
  return json;
}

std::string report_to_text(const Report& report) {
  std::string text = frame_to_json(report).dump(kIndent);
  if (!report.points.empty()) {
    // The empty list of points is the last member, so it can be cut off and replaced.
    constexpr std::string_view kNoPoints = "[]\n}";
    text.resize(text.size() - kNoPoints.size());
    text.append("[").append(all_points_text(report.points)).append("\n  ]\n}");
  }
  return text + "\n";
}

Report report_from_json(const Json& json) {
  require_schema(json, kReportSchema.kind);
  PointReader reader;
  std::vector<PointRecord> points;
  for (const JsonField& point : JsonField(json).at("points").elements()) {
    points.push_back(reader.read(point));
  }
  return with_frame(json, std::move(points));
}

Report report_from_text(std::string_view text, const std::string& name) {
  PointReader reader;
  std::vector<PointRecord> points;
  // Checks first that the file is a report of this version, and then reads the point.
  const auto take = [&](const Json& so_far, const Json& element, std::size_t index) {
    if (!so_far.contains("schema")) return false;
    require_schema(so_far, kReportSchema.kind);
    const std::string place = "points[" + std::to_string(index) + "]";
    points.push_back(reader.read(JsonField(element, &place)));
    return true;
  };
  const auto take_named = [&](const Json& so_far, const Json& element, std::size_t index) {
    try {
      return take(so_far, element, index);
    } catch (const FormatError& error) {
      throw FormatError(name + ": " + error.what());
    }
  };
  const Json json = parse_json_taking(text, name, "points", take_named);
  try {
    return points.empty() ? report_from_json(json) : with_frame(json, std::move(points));
  } catch (const FormatError& error) {
    throw FormatError(name + ": " + error.what());
  }
}

Json point_file_to_json(const PointFile& file) {
  Json json = {{"schema", schema_name(kPointSchema)}};
  write_provenance(json, file.provenance);
  add_members(json, file.unknown);
  json["point"] = point_to_json(file.point);
  return json;
}

PointFile point_file_from_json(const Json& json) {
  require_schema(json, kPointSchema.kind);
  const JsonField field(json);
  PointFile file;
  read_value(field, file.provenance);
  file.point = PointReader().read(field.at("point"));
  file.unknown = unknown_of_frame(json, file.provenance, {"point"});
  return file;
}

}  // namespace rematch
