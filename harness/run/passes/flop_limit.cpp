#include "harness/run/passes/flop_limit.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "policies/predict/device/device_sheet.h"

namespace rematch {
namespace {

// Dense flops of one multiprocessor in a clock: tensor cores for 16-bit types, and for float32 the
// tensor cores too, as TF32 may be allowed. From NVIDIA's data sheets: an H100 SXM's 989 TFLOP/s in
// bfloat16 are 132 multiprocessors of 4096 at 1.83 GHz, an L40S's 362 are 142 of 1024 at 2.49 GHz.
struct PerClock {
  std::string_view compute_capability;
  double half;
  double single;
};
constexpr std::array kPerClock = {PerClock{"8.0", 2048, 1024}, PerClock{"8.6", 1024, 512},
                                  PerClock{"8.9", 1024, 512}, PerClock{"9.0", 4096, 2048}};

// No CPU core does more in a clock than two 512-bit multiply-adds, or one AMX tile product, and
// none clocks higher.
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
  point.reason = "its step time implies " + teraflops(*point.implied_flops_per_second) +
                 ", and the device cannot do more than " + teraflops(*point.most_flops_per_second) +
                 "; the step did not do its work, or the clock is wrong";
}

}  // namespace rematch
