#include "harness/run/prediction/predicted_point.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "harness/run/children/rank_records.h"
#include "harness/run/passes/op_counts.h"
#include "harness/training/device.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/profile.h"

namespace rematch {
namespace {

// Estimates the size of the libraries' workspaces. They are allocated before the measured step, so
// they are in the measured baseline but not in the baseline predicted on meta. The estimate is the
// difference.
void add_workspace(const MemoryRecord& predicted, MemoryRecord& measured) {
  measured.predicted_peak_note = kTemporariesNotMeasured;
  if (!measured.baseline_requested || !predicted.baseline_requested) return;
  measured.workspace = *measured.baseline_requested - *predicted.baseline_requested;
}

// Dense flops of one multiprocessor in one clock, from NVIDIA's data sheets. `half` is for 16-bit
// types on tensor cores. `single` is for float32, also on tensor cores, because TF32 may be
// allowed. For example, an H100 SXM has 132 multiprocessors with 4096 flops each at 1.83 GHz, which
// is 989 TFLOP/s in bfloat16.
struct PerClock {
  std::string_view compute_capability;
  double half;
  double single;
};
constexpr std::array kPerClock = {PerClock{"8.0", 2048, 1024}, PerClock{"8.6", 1024, 512},
                                  PerClock{"8.9", 1024, 512}, PerClock{"9.0", 4096, 2048}};

// Upper limits of one CPU core. In one clock a core does at most two 512-bit multiply-adds or one
// AMX tile product. kCpuHertz is the highest clock.
constexpr double kCpuSinglePerClock = 64;
constexpr double kCpuHalfPerClock = 2048;
constexpr double kCpuHertz = 6.5e9;

bool is_half(std::string_view dtype) { return dtype == "bfloat16" || dtype == "float16"; }

std::optional<double> gpu_limit(const Environment& environment, std::string_view dtype) {
  if (!environment.compute_capability || !environment.multiprocessors ||
      !environment.sm_clock_most_mhz) {
    return std::nullopt;
  }
  const auto* found = std::find_if(kPerClock.begin(), kPerClock.end(), [&](const PerClock& entry) {
    return entry.compute_capability == *environment.compute_capability;
  });
  if (found == kPerClock.end()) return std::nullopt;
  return (is_half(dtype) ? found->half : found->single) * *environment.multiprocessors *
         *environment.sm_clock_most_mhz * 1e6;
}

std::string teraflops(double flops_per_second) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g TFLOP/s", flops_per_second / 1e12);
  return text.data();
}

}  // namespace

void add_prediction(const Variant& variant, int num_steps, PointRecord& point) {
  point.predicted_counts = times(variant.prediction.counts.by_class, num_steps);
  point.recomputed_step_flops = variant.prediction.recomputed_flops;
  if (point.ranks) {
    point.ranks->predicted_collectives =
        times(collectives_in(variant.prediction.counts.by_op), num_steps);
    const std::vector<PredictedStage>& stages = variant.prediction.stages;
    for (RankRecord& rank : point.ranks->ranks) {
      if (stages.empty()) break;
      const std::size_t of_stage = point.ranks->ranks.size() / stages.size();
      rank.predicted_peak =
          stages.at(static_cast<std::size_t>(rank.rank) / of_stage).memory.peak_allocated;
    }
  }
  if (!point.memory) return;
  point.memory->predicted_peak_allocated = variant.prediction.memory.peak_allocated;
  point.memory->predicted_after_forward = variant.prediction.memory.after_forward;
  if (const auto& host = variant.prediction.memory.host; host && point.memory->host) {
    point.memory->host->predicted_peak = host->peak;
    point.memory->host->predicted_copied_out = host->copied_out;
    point.memory->host->predicted_copied_back = host->copied_back;
  }
  point.memory->predicted_peak_requested = variant.prediction.memory.peak_requested;
  if (names_cuda(point.device)) add_workspace(variant.prediction.memory, *point.memory);
  Bytes dead;
  for (const PlannedRegion& region : variant.plan.regions) {
    for (const PlannedOp& op : variant.plan.types[static_cast<std::size_t>(region.type)].ops) {
      if (op.dead_save) dead += op.bytes;
    }
  }
  point.memory->dead_save = dead;
}

void check_counts(const Variant& variant, int num_steps, PointRecord& point) {
  if (!point.counts) return;
  const auto differs =
      first_difference(times(variant.prediction.counts.by_op, num_steps), point.counts->by_op);
  point.effect->counts_equal_prediction = !differs.has_value();
  if (!differs) return;
  point.effect->detail = differs->op + " in " + std::string(to_string(differs->phase)) +
                         ": executed " + std::to_string(differs->other) + ", predicted " +
                         std::to_string(differs->one);
  if (point.status != PointStatus::kOk) return;
  point.status = PointStatus::kInvalid;
  point.reason = "executed ops differ from the prediction: " + point.effect->detail;
}

void add_flops(const Variant& variant, const Environment& environment, PointRecord& point) {
  if (!point.time || !point.time->step_median) return;
  point.step_flops = variant.step_flops;
  const double seconds = std::chrono::duration<double>(*point.time->step_median).count();
  point.implied_flops_per_second = static_cast<double>(variant.step_flops) / seconds;
  point.most_flops_per_second = most_flops_per_second(
      environment, point.device, variant.identity.dtype, variant.identity.threads);
  point.sheet_flops_per_second =
      sheet_flops_per_second(environment, point.device, variant.identity.dtype);
  if (point.sheet_flops_per_second) {
    const double could = *point.sheet_flops_per_second * seconds;
    const auto flops = static_cast<double>(variant.step_flops);
    point.hardware_flops_utilization = flops / could;
    point.model_flops_utilization =
        (flops - static_cast<double>(variant.prediction.recomputed_flops)) / could;
  }
  refuse_impossible_rate(point);
}

std::optional<double> most_flops_per_second(const Environment& environment, std::string_view device,
                                            std::string_view dtype, int threads) {
  if (device == "cuda") return gpu_limit(environment, dtype);
  if (device != "cpu") return std::nullopt;
  return threads * kCpuHertz * (is_half(dtype) ? kCpuHalfPerClock : kCpuSinglePerClock);
}

std::optional<double> sheet_flops_per_second(const Environment& environment,
                                             std::string_view device, std::string_view dtype) {
  if (device != "cuda" || !environment.device) return std::nullopt;
  const DeviceSheet* sheet = sheet_of_card(*environment.device);
  if (sheet == nullptr) return std::nullopt;
  if (dtype == "bfloat16") return sheet->bfloat16_flops_per_second;
  const auto forced = environment.variables.find("NVIDIA_TF32_OVERRIDE");
  const bool has_tf32 = forced != environment.variables.end() && forced->second != "0";
  if (dtype != "float32" || has_tf32) return std::nullopt;
  return sheet->float32_flops_per_second;
}

void refuse_impossible_rate(PointRecord& point) {
  if (!point.implied_flops_per_second || !point.most_flops_per_second) return;
  if (*point.implied_flops_per_second <= *point.most_flops_per_second) return;
  if (point.status != PointStatus::kOk) return;
  point.status = PointStatus::kInvalid;
  point.reason = "the step time implies " + teraflops(*point.implied_flops_per_second) +
                 ", but the device cannot do more than " + teraflops(*point.most_flops_per_second) +
                 "; the step did not do its work, or the clock is wrong";
}

}  // namespace rematch
