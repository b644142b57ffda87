#include "harness/cli/search/search_hints.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/cli/search/search_fit.h"
#include "policies/predict/device/device_sheet.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

// Every device with a data sheet here has bfloat16.
std::optional<std::string> dtype_hint(const FrontRecord& record) {
  if (record.dtype != "float32" || find_device_sheet(record.device) == nullptr) return std::nullopt;
  return "this is float32, and most train in bfloat16 on " + record.device + ": --dtype bfloat16";
}

bool is_in_loss(const FrontPoint& point) {
  return point.figures.peak_place == "loss" || point.figures.peak_place == "head";
}

std::optional<std::string> fused_ops_hint(const SearchFlags& flags, const FrontRecord& record) {
  const std::vector<FrontPoint>& points = record.front.points;
  const auto in_loss = std::find_if(points.begin(), points.end(), is_in_loss);
  if (!flags.trace_file.empty() || in_loss == points.end()) return std::nullopt;
  const std::optional<ModelSpec> fused = flags.model.spec_of_fused_ops();
  if (!fused) return std::nullopt;
  const std::optional<Bytes> eager_peak = recomputed_peak(record_trace(flags.model.spec()), record);
  const std::optional<Bytes> fused_peak = recomputed_peak(record_trace(*fused), record);
  if (!eager_peak || !fused_peak || *fused_peak >= *eager_peak) return std::nullopt;
  return "peaks lie in the " + in_loss->figures.peak_place +
         ", with the logits there whole; --ops fused takes head and cross-entropy in chunks: the "
         "peak of full is " +
         format_bytes(*fused_peak) + " with it instead of " + format_bytes(*eager_peak);
}

std::optional<std::string> export_hint(const SearchFlags& flags) {
  if (flags.target.empty() || flags.output.empty() || flags.trace_file.empty()) return std::nullopt;
  return "rematch export " + flags.output + "#N --to torch --trace " + flags.trace_file +
         " writes point N as a file of Python";
}

}  // namespace

std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record) {
  std::vector<std::string> hints;
  if (auto hint = dtype_hint(record)) hints.push_back(*std::move(hint));
  if (auto hint = fused_ops_hint(flags, record)) hints.push_back(*std::move(hint));
  if (auto hint = export_hint(flags)) hints.push_back(*std::move(hint));
  return hints;
}

}  // namespace rematch
