// Peak rates from the data sheets of a few devices, for rooflines. Peaks of the hardware,
// not what any program reaches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"

namespace rematch {

struct DeviceSheet {
  std::string_view name;    // "h100"
  std::string_view source;  // which document says so
  Bytes memory;
  // Dense: without structured sparsity.
  double bfloat16_flops_per_second = 0;
  double float32_flops_per_second = 0;  // float32 throughout: no TF32, as LibTorch's default
  double memory_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;  // in one direction
  // To the other cards of a node, in one direction: NVLink, or PCIe where there is none.
  double link_bytes_per_second = 0;
  // Names that the driver gives to cards of these rates: "NVIDIA H100 80GB HBM3".
  std::vector<std::string_view> cards;
};

const std::vector<DeviceSheet>& device_sheets();

// Null: unknown.
const DeviceSheet* find_device_sheet(std::string_view name);
// By the driver's name of a card.
const DeviceSheet* sheet_of_card(std::string_view card);

// "unknown device 'h10'; did you mean h100? Known are h100, ..."
Rejected unknown_device(std::string_view name);

}  // namespace rematch
