#include "harness/cli/search/search_advice.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "harness/cli/exit_code.h"
#include "models/preset/parallel.h"
#include "models/scope/names.h"
#include "policies/base/format.h"
#include "policies/base/format_apart.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/step/step.h"
#include "reports/render/tables/front_table.h"

namespace rematch {
namespace {

constexpr int kMaxSuggestedRanks = 1024;
constexpr std::int64_t kFewestTokens = 64;

std::string fits_with(const std::string& flag, Bytes peak, int world) {
  return flag + " (" + format_bytes(peak) + (world > 1 ? " a rank)" : ")");
}

// Returns the peak when every region is recomputed.
std::optional<Bytes> peak_of(const ShardedStep& step, const FrontRecord& record) {
  const auto plan = resolve(full_policy(), step.trace, NoEffect::kAllow);
  if (!std::holds_alternative<Plan>(plan)) return std::nullopt;
  StepSimulator simulator(step.trace, record.optimizer);
  simulator.use_gathered(step.gathered);
  return simulator.simulate(std::get<Plan>(plan), record.front.schedule).peak_bytes();
}

std::optional<Bytes> recomputed_peak(const Trace& trace, const FrontRecord& record) {
  return peak_of({trace, {}}, record);
}

// Returns the peak on one of `world` ranks when every region is recomputed. Absent if --parallel
// already shards the model.
std::optional<Bytes> peak_over(int world, const SearchFlags& flags, const Trace& trace,
                               const FrontRecord& record) {
  if (!flags.trace_file.empty()) {
    const bool is_whole = layout_text(trace.dimensions).empty();
    return is_whole ? peak_of(shard_step(trace, world), record) : std::nullopt;
  }
  const std::optional<ModelSpec> spec = flags.model.spec_over(world);
  return spec ? recomputed_peak(record_trace(*spec), record) : std::nullopt;
}

// Returns the memory limit on `world` ranks. If `limit` is the device's memory minus the usual
// reserve of one rank, replaces that reserve by the usual reserve for `world` ranks.
Bytes limit_over(int world, const FrontRecord& record, Bytes limit) {
  const bool is_usual = !record.budget && record.device_memory && record.reserve &&
                        !record.reserve->asked && record.reserve->communicators.count == 0;
  if (!is_usual) return limit;
  return *record.device_memory -
         usual_reserve(find_device_sheet(record.device), *record.device_memory, world > 1 ? 1 : 0)
             .total();
}

// Finds a number of ranks on which a plan fits, by doubling the given number.
std::optional<std::string> ranks_that_fit(const SearchFlags& flags, const Trace& trace,
                                          const FrontRecord& record, Bytes limit) {
  for (int world = 2 * record.world; world <= kMaxSuggestedRanks; world *= 2) {
    const std::optional<Bytes> peak = peak_over(world, flags, trace, record);
    if (!peak) return std::nullopt;
    if (*peak <= limit_over(world, record, limit)) {
      return fits_with("--world " + std::to_string(world), *peak, world);
    }
  }
  return std::nullopt;
}

std::optional<std::string> fused_ops_fit(const SearchFlags& flags, const FrontRecord& record,
                                         Bytes limit) {
  const std::optional<ModelSpec> fused = flags.model.spec_of_fused_ops();
  if (!fused) return std::nullopt;
  const std::optional<Bytes> peak = recomputed_peak(record_trace(*fused), record);
  if (!peak || *peak > limit) return std::nullopt;
  return fits_with("--ops fused", *peak, record.world);
}

// Finds a number of tokens that fits, by halving the given number. Skips numbers of tokens for
// which a video model has no grid.
std::optional<std::string> tokens_that_fit(const SearchFlags& flags, const FrontRecord& record,
                                           Bytes limit) {
  const auto asked = record.dimensions.find("tokens");
  if (asked == record.dimensions.end()) return std::nullopt;
  for (std::int64_t tokens = asked->second / 2; tokens >= kFewestTokens; tokens /= 2) {
    try {
      const Trace trace = record_trace(flags.model.spec_with_tokens(tokens));
      const std::optional<Bytes> peak = recomputed_peak(trace, record);
      if (!peak || *peak > limit) continue;
      return fits_with("--tokens " + std::to_string(tokens), *peak, record.world);
    } catch (const UsageError&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string no_plan_fits(const SearchFlags& flags, const Trace& trace, const FrontRecord& record,
                         Bytes limit, Bytes lowest) {
  std::string line = "no plan fits " + (record.budget ? budget_of(record) : memory_of(record)) +
                     ", the lowest peak is " + format_apart(lowest, record.budget.value_or(limit));
  std::vector<std::string> ways;
  const auto add = [&ways](std::optional<std::string> way) {
    if (way) ways.push_back(*std::move(way));
  };
  add(ranks_that_fit(flags, trace, record, limit));
  if (flags.trace_file.empty()) {
    add(fused_ops_fit(flags, record, limit));
    add(tokens_that_fit(flags, record, limit));
  }
  if (ways.empty()) return line + "; more ranks, fused ops or fewer tokens do not make it fit";
  return line + "; what fits: " + joined(ways, ", or ");
}

namespace {

// All devices with a data sheet in rematch support bfloat16.
std::optional<std::string> dtype_hint(const FrontRecord& record) {
  if (record.dtype != "float32" || find_device_sheet(record.device) == nullptr) return std::nullopt;
  return "this step uses float32; most training uses bfloat16 on " + record.device +
         ": --dtype bfloat16";
}

bool is_in_loss(const FrontPoint& point) {
  return point.figures.peak_place == scope_names::kLoss ||
         point.figures.peak_place == scope_names::kHead;
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
  // Video models have neither logits nor a cross-entropy; their fused ops save memory elsewhere.
  const bool has_logits = record.dimensions.contains("vocab");
  const std::string of_full = "the peak of policy full falls from " + format_bytes(*eager_peak) +
                              " to " + format_bytes(*fused_peak);
  if (!has_logits) return "--ops fused needs less memory: " + of_full;
  return "peaks are in the " + in_loss->figures.peak_place +
         ", which holds all logits; --ops fused computes head and cross-entropy in chunks: " +
         of_full;
}

std::optional<std::string> export_hint(const SearchFlags& flags) {
  if (flags.target.empty() || flags.output.empty() || flags.trace_file.empty()) return std::nullopt;
  return "rematch export " + flags.output + "#N --to torch --trace " + flags.trace_file +
         " writes point N as a Python file";
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
