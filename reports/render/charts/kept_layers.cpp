#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "policies/base/text.h"
#include "policies/trace/op_class.h"
#include "reports/render/charts/builders.h"
#include "reports/render/format.h"
#include "reports/render/tables/front_words.h"

namespace rematch::chart {
namespace {

// How many layers "0, 2, 13-31" names.
double num_layers(const LayerRun& run) {
  double number = 0;
  for (std::size_t at = 0; at < run.layers.size();) {
    const std::size_t comma = std::min(run.layers.find(',', at), run.layers.size());
    const std::string range = run.layers.substr(at, comma - at);
    const std::size_t dash = range.find('-');
    const double first = std::atof(range.c_str());
    const double last = dash == std::string::npos ? first : std::atof(range.c_str() + dash + 1);
    number += std::max(1.0, last - first + 1);
    at = comma + 1;
  }
  return number;
}

constexpr const char* kCheaper = "other ops";

// "attention", "matmuls of ffn", of "+1.ffn.gate::aten::mm#2": what a layer recomputes cheaply is
// not told apart.
std::string role_of(std::string_view saved) {
  const std::size_t colons = saved.find("::");
  if (colons == std::string_view::npos) return kCheaper;
  std::string_view scope = saved.substr(0, colons);
  std::string_view op = saved.substr(colons + 2);
  op = op.substr(0, op.find('#'));
  if (scope.starts_with('+')) {  // of a layer of a region over several
    const std::size_t dot = scope.find('.');
    scope.remove_prefix(dot == std::string_view::npos ? scope.size() : dot + 1);
  }
  const OpClass op_class = op_class_of(op);
  if (op_class == OpClass::kAttentionForward) return "attention";
  if (op_class != OpClass::kMatmul) return kCheaper;
  const std::string module(scope.substr(0, scope.find('.')));
  return module.empty() ? "matmuls" : "matmuls of " + module;
}

// "attention, matmuls of ffn"; "other ops" where nothing costly is kept.
std::string roles_of(const std::vector<std::string>& saves) {
  std::set<std::string> roles;
  for (const std::string& saved : saves) roles.insert(role_of(saved));
  if (roles.size() > 1) roles.erase(kCheaper);
  return joined(std::vector<std::string>(roles.begin(), roles.end()));
}

// Colours of treatments, given out in the order in which points have them.
class Treatments {
 public:
  Paint paint_of(const LayerRun& run) {
    if (!run.is_checkpointed) return note("Keep all", Paint::kBlue);
    if (run.saves.empty()) return note("Recompute all", Paint::kLightGrey);
    const std::string roles = roles_of(run.saves);
    if (roles == kCheaper) return note("Keep other ops alone", kCheap);
    const auto [found, is_new] = paints_.try_emplace(roles, kOther);
    if (is_new && next_ < kPaints.size()) found->second = kPaints.at(next_++);
    return note(found->second == kOther ? "Keep other sets of ops" : "Keep " + roles,
                found->second);
  }
  std::vector<Key> legend() && { return std::move(legend_); }

 private:
  static constexpr Paint kCheap = Paint::kGrey;
  static constexpr Paint kOther = Paint::kDarkGrey;
  static constexpr std::array kPaints = {Paint::kTeal, Paint::kOrange, Paint::kPurple,
                                         Paint::kYellow, Paint::kPink};

  Paint note(const std::string& words, Paint paint) {
    const bool is_known = std::any_of(legend_.begin(), legend_.end(),
                                      [&](const Key& key) { return key.fill == paint; });
    if (!is_known) legend_.push_back({words, MarkerKind::kSquare, paint});
    return paint;
  }

  std::map<std::string, Paint> paints_;  // by the roles of the ops kept
  std::size_t next_ = 0;
  std::vector<Key> legend_;
};

}  // namespace

Rows kept_layers(const FrontRecord& record, const std::vector<std::size_t>& shown) {
  Rows chart{"What each point keeps",
             "A strip of the model's layers, the first on the left, by the costly ops that they "
             "keep.",
             "Layers"};
  Treatments treatments;
  for (const std::size_t index : shown) {
    const FrontPoint& point = record.front.points[index];
    Row row{std::to_string(index), "", format_bytes(point.figures.peak), short_saves(point)};
    row.is_bold = index == record.front.knee;
    for (const LayerRun& run : point.layers) {
      std::string hint = "layers " + run.layers + ": " +
                         (!run.is_checkpointed ? "keep all"
                          : run.saves.empty()  ? "recompute all"
                                               : "keep " + joined(run.saves));
      if (!run.regions.empty()) hint += "; regions " + joined(run.regions);
      row.segments.push_back({num_layers(run), treatments.paint_of(run), std::move(hint)});
    }
    chart.rows.push_back(std::move(row));
  }
  chart.legend = std::move(treatments).legend();
  return chart;
}

}  // namespace rematch::chart
