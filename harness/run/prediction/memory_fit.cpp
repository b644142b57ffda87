#include "harness/run/prediction/memory_fit.h"

#include <algorithm>

#include "harness/measure/cuda_device.h"
#include "harness/measure/machine_memory.h"
#include "harness/training/device.h"
#include "policies/base/format.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/reserve.h"

namespace rematch {
namespace {

Bytes predicted_peak(const Variant& variant) {
  return variant.prediction.memory.peak_allocated.value_or(Bytes{});
}

std::optional<AvailableMemory> memory_of_machine() {
  const std::optional<Bytes> available = machine_memory().available;
  if (!available) return std::nullopt;
  return AvailableMemory{*available, "available on this machine"};
}

// Excludes NCCL's communicators, because their size is too uncertain to reject a run.
MemoryReserve reserve_of(const CudaDevice& card) {
  return usual_reserve(sheet_of_card(card.name), card.memory, /*num_communicators=*/0);
}

// Returns nothing if `device` is not CUDA or no such card exists.
std::optional<CudaDevice> card_of(const std::string& device) {
  if (!names_cuda(device)) return std::nullopt;
  return cuda_device(device_named(device).index());
}

}  // namespace

std::optional<AvailableMemory> available_memory_of(const std::string& device) {
  if (device == "cpu") return memory_of_machine();
  const std::optional<CudaDevice> card = card_of(device);
  if (!card) return std::nullopt;
  return AvailableMemory{card->memory - reserve_of(*card).context,
                         "maximum for tensors on the " + card->name};
}

std::optional<AvailableMemory> usual_memory_of(const std::string& device) {
  if (device == "cpu") return memory_of_machine();
  const std::optional<CudaDevice> card = card_of(device);
  if (!card) return std::nullopt;
  return AvailableMemory{
      card->memory - reserve_of(*card).total(),
      "usual share for tensors of the " + format_bytes(card->memory) + " of the " + card->name};
}

std::string why_too_large(const Variant& variant, const std::optional<AvailableMemory>& limit) {
  if (!limit || predicted_peak(variant) <= limit->bytes) return "";
  return "the predicted peak is " + format_bytes(predicted_peak(variant)) + "; " + limit->what +
         ": " + format_bytes(limit->bytes);
}

std::string why_none_fits(const std::vector<Variant>& variants,
                          const std::optional<AvailableMemory>& limit) {
  const auto smallest = std::min_element(variants.begin(), variants.end(),
                                         [](const Variant& left, const Variant& right) {
                                           return predicted_peak(left) < predicted_peak(right);
                                         });
  if (smallest == variants.end()) return "";
  const std::string why = why_too_large(*smallest, limit);
  return why.empty() ? "" : describe_variant(*smallest) + ": " + why;
}

}  // namespace rematch
