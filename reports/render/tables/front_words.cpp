#include "reports/render/tables/front_table.h"

#include <algorithm>
#include <cmath>

#include "policies/base/format.h"
#include "policies/base/format_apart.h"
#include "policies/base/text.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/compiled_graph.h"
#include "policies/trace/routing_skew.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Text of this length fits on one line below a row, on a screen of 100 columns.
constexpr std::size_t kLongestSaves = 92;

std::string optimizer_words(OptimizerKind optimizer) {
  if (optimizer == OptimizerKind::kAdamW) return "AdamW";
  if (optimizer == OptimizerKind::kNothing) return "no optimizer";
  return std::string(to_string(optimizer));
}

std::string figures_of(const Front& front, const FrontPoint& point) {
  return "peak " + format_bytes(point.figures.peak) + ", step " +
         format_duration(predicted_step(front, point));
}

// Returns text such as "81 ms to 120 ms"; one figure if both are equal.
std::string from_to(const std::vector<nanoseconds>& times) {
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  const std::string low = format_duration(*least);
  const std::string high = format_duration(*most);
  return low == high ? low : low + " to " + high;
}

// Returns the index of the point with these figures; absent if no point has them.
std::optional<std::size_t> index_of(const Front& front, const FrontPoint& sought) {
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    const FrontPoint& point = front.points[index];
    if (point.figures.peak == sought.figures.peak && point.step_time == sought.step_time) {
      return index;
    }
  }
  return std::nullopt;
}

// Returns the start of a sentence about the leading point, such as "The fastest plan that fits 40
// GiB". A front's file may contain an answer without the user's limit.
std::string question_of(const FrontRecord& record) {
  if (record.budget) return "The fastest plan that fits " + budget_of(record);
  if (record.max_slowdown_ratio) {
    return "The lowest peak for at most " + format_percent(*record.max_slowdown_ratio) +
           " more step time" + (record.front.none ? " than the fastest of all" : "");
  }
  return record.answer ? "The answer" : "The fastest plan that fits " + memory_of(record);
}

// Returns the index of the fastest point whose peak is at most `limit`; absent if all peaks are
// larger.
std::optional<std::size_t> fastest_within(const Front& front, Bytes limit) {
  std::optional<std::size_t> fastest;
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    if (front.points[index].figures.peak <= limit) fastest = index;
  }
  return fastest;
}

// Adds the memory that is left for tensors, unless the user gave it as the budget.
std::string device_memory_words(const FrontRecord& record) {
  std::string whole = format_bytes(*record.device_memory);
  if (!record.reserve || record.budget) return whole;
  return whole + ", " + format_bytes(*record.memory_for_tensors()) + " for tensors";
}

}  // namespace

std::string of_device(const FrontRecord& record) {
  return record.device == "cpu" ? "the machine's " : record.device + "'s ";
}

std::string memory_of(const FrontRecord& record) {
  std::string whole = of_device(record) + format_bytes(*record.device_memory);
  if (!record.reserve) return whole;
  return format_bytes(*record.memory_for_tensors()) + " (" + whole + " less " +
         reserve_words(*record.reserve) + ")";
}

// The user's --reserve is also subtracted from a budget; the default reserve is not.
std::string budget_of(const FrontRecord& record) {
  std::string for_tensors = format_bytes(*record.budget);
  if (!record.reserve || !record.reserve->asked) return for_tensors;
  return for_tensors + " (" + format_bytes(*record.budget + record.reserve->total()) + " less " +
         reserve_words(*record.reserve) + ")";
}

std::string reserve_words(const MemoryReserve& reserve) {
  if (reserve.asked) return format_bytes(*reserve.asked) + " of --reserve";
  std::string words = format_bytes(reserve.context) + " for the driver and the CUDA context";
  if (reserve.communicators.count > 0) {
    words += ", " + format_bytes(reserve.communicators) + " for NCCL's communicators";
  }
  return words + ", " + format_bytes(reserve.fragmentation) + " for fragmentation";
}

std::optional<std::size_t> lead_point(const FrontRecord& record) {
  if (record.answer) return index_of(record.front, *record.answer);
  if (record.budget || record.max_slowdown_ratio || !record.device_memory) return std::nullopt;
  return fastest_within(record.front, *record.memory_for_tensors());
}

std::string short_saves(const FrontPoint& point) {
  if (point.saves.size() <= kLongestSaves) return point.saves;
  const std::string start = point.saves.substr(0, kLongestSaves);
  return start.substr(0, start.find_last_of(' ')) + " ...";
}

std::string setting_words(const FrontRecord& record) {
  std::string words = record.model + ", " + record.dtype;
  if (const auto batch = record.dimensions.find("batch"); batch != record.dimensions.end()) {
    words += ", batch " + std::to_string(batch->second);
  }
  if (const auto tokens = record.dimensions.find("tokens"); tokens != record.dimensions.end()) {
    words += ", " + std::to_string(tokens->second) + " tokens";
  }
  words += accumulation_words(record.dimensions);
  words += compiled_graph_words(record.dimensions);
  words += routing_skew_words(record.dimensions);
  words += ", " + optimizer_words(record.optimizer);
  words += ", on " + record.device;
  if (record.device_memory) words += " (" + device_memory_words(record) + ")";
  words += ", " + std::string(to_string(record.front.schedule));
  return words + ranks_words(record) +
         (record.is_estimate_of_ranks() ? ", communication not counted" : "");
}

std::string ranks_words(const FrontRecord& record) {
  if (record.world == 1) return "";
  const std::string ranks = std::to_string(record.world) + " ranks";
  if (record.is_estimate_of_ranks()) return "; one of " + ranks + ", estimated";
  return "; each of " + ranks + ": " + record.layout;
}

namespace {

bool beats(const FrontPoint& other, const FrontPoint& point) {
  const bool is_no_worse =
      other.figures.peak <= point.figures.peak && other.step_time <= point.step_time;
  return is_no_worse &&
         (other.figures.peak < point.figures.peak || other.step_time < point.step_time);
}

}  // namespace

std::optional<Lead> lead_of(const FrontRecord& record) {
  const std::optional<std::size_t> index = lead_point(record);
  if (!record.answer && !index) return std::nullopt;
  Lead lead{index ? "point " + std::to_string(*index) : "",
            record.answer ? *record.answer : record.front.points[*index]};
  for (const Baseline& baseline : record.front.baselines) {
    if (beats(baseline.point, lead.point)) {
      lead = {"baseline " + baseline.point.plan.policy, baseline.point};
    }
  }
  if (record.simple && beats(record.simple->point, lead.point)) {
    lead = {"simple (whole_region)", record.simple->point};
  }
  return lead;
}

std::string lead_words(const FrontRecord& record) {
  if (record.budget && !record.answer) return "No plan fits " + budget_of(record) + ".";
  const bool is_asked = record.answer.has_value();
  if (!is_asked && (record.max_slowdown_ratio || !record.device_memory)) return "";
  const std::optional<Lead> lead = lead_of(record);
  if (!lead) {
    return "No point fits " + memory_of(record) + "; the lowest peak is " +
           format_apart(record.front.points.front().figures.peak, *record.memory_for_tensors()) +
           ".";
  }
  return question_of(record) + (lead->name.empty() ? "" : ", " + lead->name) + ": " +
         figures_of(record.front, lead->point) + " (" +
         format_change(predicted_step(record.front, record.front.reference()).count(),
                       predicted_step(record.front, lead->point).count()) +
         "): " + short_saves(lead->point);
}

std::string knee_words(const Front& front) {
  return "The knee, point " + std::to_string(front.knee) + ": " +
         figures_of(front, front.points[front.knee]);
}

std::string plans_words(const Front& front) {
  return format_part(front.points.size(), front.num_plans_found) + " plans worth having";
}

std::string exactness_words(const FrontRecord& record) {
  const Front& front = record.front;
  if (!front.is_complete) return "the search was stopped, so better plans may be missing";
  std::vector<std::string> gaps;
  if (front.time_gap.count() > 0) {
    const double slope = front.measurement ? front.measurement->line.slope : 1;
    const double gap = slope * static_cast<double>(front.time_gap.count());
    gaps.push_back("up to " + format_duration(nanoseconds(std::llround(gap))) + " faster");
  }
  if (front.transient_gap.count > 0) {
    gaps.push_back("up to " + format_bytes(front.transient_gap) + " smaller");
  }
  std::string words =
      gaps.empty() ? "all save sets of a block and all combinations of layers were considered"
                   : "plans that are " + joined(gaps, " or ") + " may have been missed";
  if (!record.is_estimate_of_ranks()) return words;
  return words + ". Bytes are estimated for one of " + std::to_string(record.world) +
         " ranks that share parameters, gradients and optimizer state, with only the current "
         "block's parameters gathered; times exclude communication";
}

std::string describe_command(const std::string& point, const FrontFiles& files) {
  const std::string of_trace = files.own_trace.empty() ? "" : " --trace " + files.own_trace;
  return "rematch describe --plan " + point + of_trace;
}

std::string run_command(const FrontRecord& record, const std::string& point,
                        const FrontFiles& files) {
  if (is_compiled_graph(record.dimensions)) {
    return "rematch.partitioner(\"" + point + "\") in Python";
  }
  if (files.own_trace.empty()) return "rematch run --plan " + point;
  return "rematch.Checkpoint(\"" + point + "\") in Python";
}

std::string offload_words(const FrontRecord& record) {
  if (!record.host_link) return "";
  const auto rate = [](double bytes_per_second) {
    return format_fixed(bytes_per_second / 1e9, 1) + " GB/s";
  };
  return "Plans may offload: copies at " + rate(record.host_link->to_host_bytes_per_second) +
         " to the host and " + rate(record.host_link->to_device_bytes_per_second) + " back (" +
         record.host_link->source + "). Compute hides up to " +
         format_duration(record.host_link->hidden_out) +
         " of a region's copies to the host and up to " +
         format_duration(record.host_link->hidden_back) +
         " of its copies back; step times and bounds count the rest.";
}

std::string ceilings_words(const FrontRecord& record) {
  if (record.ceilings.empty()) return "";
  return "Times of ops follow from measured ceilings (" + record.ceilings + ").";
}

std::string communication_words(const FrontRecord& record) {
  std::vector<nanoseconds> communication;
  std::vector<nanoseconds> overlapped;
  for (const FrontPoint& point : record.front.points) {
    const std::optional<StepRange> range = point.range();
    if (!range || range->communication.count() == 0) return "";
    communication.push_back(range->communication);
    overlapped.push_back(range->all_overlaps());
  }
  const std::string by = record.links.empty() ? "" : " by measured links (" + record.links + ")";
  return "In these steps communication takes " + from_to(communication) + by +
         ", without overlap; if compute hides all of it, they take " + from_to(overlapped) +
         ", which is the lower bound";
}

std::string hypervolume_words(const Front& front) {
  std::string words = "Hypervolume " + format_fixed(front.hypervolume, 4);
  if (!front.baselines.empty()) {
    words += ", of all baselines together " + format_fixed(front.baseline_hypervolume, 4);
  }
  return words + ": the share of the plane of peak and step time that plans reach; more is better";
}

}  // namespace rematch
