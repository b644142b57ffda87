#include "policies/predict/device/device_sheet.h"

#include <algorithm>

#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

constexpr Bytes hundredths_of_gib(std::int64_t hundredths) {
  return {hundredths * (std::int64_t{1} << 30) / 100};
}

}  // namespace

// The data sheets of H100, H200 and B200 give tensor-core rates with sparsity; the dense rate is
// half. They give the sum of both directions for PCIe and NVLink. An L40S has no NVLink.
//
// Note [How much memory a device has] `memory` is the total that cudaMemGetInfo reports. PyTorch's
// out-of-memory messages show it as "total capacity". On most cards it is less than the data
// sheet's decimal gigabytes, because ECC and the driver use some memory. On an H100 it is more,
// because the chips hold 80 GiB. Drivers differ by up to 0.3 GiB; the table has the smallest value
// found. Tensors cannot use all of this memory: see Note [Memory reserved on a card].
const std::vector<DeviceSheet>& device_sheets() {
  static const std::vector<DeviceSheet> sheets = {
      {"h100",
       "NVIDIA H100 Tensor Core GPU data sheet, H100 SXM: BF16 1,979 TFLOPS with sparsity, NVLink "
       "900 GB/s; memory: "
       "79.11 GiB in github.com/vllm-project/vllm/issues/27508",
       hundredths_of_gib(7911),
       989.5 * kTera,
       67 * kTera,
       3.35 * kTera,
       64 * kGiga,
       450 * kGiga,
       {"NVIDIA H100 80GB HBM3"}},
      {"h200",
       "NVIDIA H200 Tensor Core GPU data sheet, H200 SXM: BF16 1,979 TFLOPS with sparsity, NVLink "
       "900 GB/s; memory: "
       "139.72 to 139.81 GiB in published out-of-memory logs",
       hundredths_of_gib(13972),
       989.5 * kTera,
       67 * kTera,
       4.8 * kTera,
       64 * kGiga,
       450 * kGiga,
       {"NVIDIA H200"}},
      {"l40s",
       "NVIDIA L40S data sheet: BF16 362.05 TFLOPS, PCIe Gen4 x16; memory with ECC: 44.39 to "
       "44.53 GiB, the latter in github.com/vllm-project/vllm/issues/15598",
       hundredths_of_gib(4439),
       362.05 * kTera,
       91.6 * kTera,
       864 * kGiga,
       32 * kGiga,
       32 * kGiga,
       {"NVIDIA L40S"}},
      {"a100",
       "NVIDIA A100 Tensor Core GPU data sheet, A100 80GB SXM: BF16 312 TFLOPS, NVLink 600 GB/s; "
       "memory: 79.14 GiB "
       "in github.com/lianqi1008/Control-GIC/issues/6, 79.35 GiB in "
       "github.com/OSU-NLP-Group/TableLlama/issues/10",
       hundredths_of_gib(7914),
       312 * kTera,
       19.5 * kTera,
       2039 * kGiga,
       32 * kGiga,
       300 * kGiga,
       {"NVIDIA A100-SXM4-80GB"}},
      {"b200",
       "NVIDIA HGX B200 data sheet, one of eight GPUs: BF16 4.5 PFLOPS with sparsity, NVLink 1.8 "
       "TB/s; memory: 178.35 and 178.36 GiB in published out-of-memory logs",
       hundredths_of_gib(17835),
       2250 * kTera,
       75 * kTera,
       8 * kTera,
       64 * kGiga,
       900 * kGiga,
       {"NVIDIA B200"}},
  };
  return sheets;
}

const DeviceSheet* find_device_sheet(std::string_view name) {
  const auto found = std::find_if(device_sheets().begin(), device_sheets().end(),
                                  [name](const DeviceSheet& sheet) { return sheet.name == name; });
  return found == device_sheets().end() ? nullptr : &*found;
}

const DeviceSheet* sheet_of_card(std::string_view card) {
  for (const DeviceSheet& sheet : device_sheets()) {
    const auto& cards = sheet.cards;
    if (std::find(cards.begin(), cards.end(), card) != cards.end()) return &sheet;
  }
  return nullptr;
}

Rejected unknown_device(std::string_view name) {
  std::vector<std::string_view> known;
  for (const DeviceSheet& sheet : device_sheets()) known.push_back(sheet.name);
  const auto nearest = nearest_name(name, known);
  return {"unknown device '" + std::string(name) + "'; " +
          (nearest ? "did you mean '" + *nearest + "'? " : std::string()) +
          "there are data sheets for " + joined(known) +
          "; cpu has none: measure it with rematch profile"};
}

}  // namespace rematch
