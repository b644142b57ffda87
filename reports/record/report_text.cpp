#include "reports/record/report_text.h"

#include <algorithm>
#include <future>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "policies/base/json.h"
#include "reports/record/json/parts_json.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

constexpr int kIndent = 2;
constexpr std::size_t kLeastPointsOfAThread = 64;
constexpr std::size_t kMostTextThreads = 8;

// Indented as an element of a member. A newline inside a string is escaped, so each one is a line's
// end.
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

// In parts, each by its own thread.
std::string all_points_text(const std::vector<PointRecord>& points) {
  const std::size_t num_cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t num_parts = std::clamp<std::size_t>(points.size() / kLeastPointsOfAThread, 1,
                                                        std::min(num_cores, kMostTextThreads));
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

std::string report_to_text(const Report& report) {
  Report frame;
  frame.provenance = report.provenance;
  frame.planned = report.planned;
  frame.sources = report.sources;
  frame.unknown = report.unknown;
  frame.repeats = report.repeats;
  frame.unmeasured = report.unmeasured;
  std::string text = report_to_json(frame).dump(kIndent);
  if (!report.points.empty()) {
    // The points are the last member.
    constexpr std::string_view kNoPoints = "[]\n}";
    text.resize(text.size() - kNoPoints.size());
    text.append("[").append(all_points_text(report.points)).append("\n  ]\n}");
  }
  return text + "\n";
}

}  // namespace rematch
