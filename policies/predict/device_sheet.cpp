#include "policies/predict/device_sheet.h"

#include <algorithm>

#include "policies/trace/joined.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;
constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

}  // namespace

// The sheets give tensor-core rates with sparsity for H100 and H200: half of that is dense. PCIe
// bandwidths are given for both directions together.
const std::vector<DeviceSheet>& device_sheets() {
  static const std::vector<DeviceSheet> sheets = {
      {"h100", "NVIDIA H100 Tensor Core GPU data sheet, H100 SXM: BF16 1,979 TFLOPS with sparsity",
       Bytes{80 * kGigabyte}, 989.5 * kTera, 67 * kTera, 3.35 * kTera, 64 * kGiga},
      {"h200", "NVIDIA H200 Tensor Core GPU data sheet, H200 SXM: BF16 1,979 TFLOPS with sparsity",
       Bytes{141 * kGigabyte}, 989.5 * kTera, 67 * kTera, 4.8 * kTera, 64 * kGiga},
      {"l40s", "NVIDIA L40S data sheet: BF16 362.05 TFLOPS, PCIe Gen4 x16", Bytes{48 * kGigabyte},
       362.05 * kTera, 91.6 * kTera, 864 * kGiga, 32 * kGiga},
      {"a100", "NVIDIA A100 Tensor Core GPU data sheet, A100 80GB SXM: BF16 312 TFLOPS",
       Bytes{80 * kGigabyte}, 312 * kTera, 19.5 * kTera, 2039 * kGiga, 32 * kGiga},
  };
  return sheets;
}

const DeviceSheet* find_device_sheet(std::string_view name) {
  const auto found = std::find_if(device_sheets().begin(), device_sheets().end(),
                                  [name](const DeviceSheet& sheet) { return sheet.name == name; });
  return found == device_sheets().end() ? nullptr : &*found;
}

Rejected unknown_device(std::string_view name) {
  std::vector<std::string_view> known;
  for (const DeviceSheet& sheet : device_sheets()) known.push_back(sheet.name);
  return {"unknown device '" + std::string(name) + "'" + did_you_mean(name, known) +
          "; data sheets are here of " + joined(known) + ", and cpu is measured"};
}

}  // namespace rematch
