// Lists what can hold the bytes that are alive at a moment of a step. Peaks are split by holder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/base/words.h"

namespace rematch {

enum class Holder : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kFrozenParameters,    // weights that are not trained; a simulated step counts them as kOther
  kSavedActivations,    // kept from forward to backward, by autograd or by the engine
  kRecomputeTransient,  // made by recompute and not yet released
  kOther,               // batch, constants, and temporaries of forward and backward
};

template <>
inline constexpr std::array<std::string_view, 7> kWords<Holder> = {
    "parameters",        "gradients",           "optimizer", "frozen_parameters",
    "saved_activations", "recompute_transient", "other"};

// Bytes for each holder.
struct HolderBytes {
  std::array<Bytes, kAll<Holder>.size()> bytes{};
  Bytes& operator[](Holder holder) { return bytes.at(static_cast<std::size_t>(holder)); }
  Bytes operator[](Holder holder) const { return bytes.at(static_cast<std::size_t>(holder)); }
  Bytes total() const {
    Bytes sum;
    for (const Bytes part : bytes) sum += part;
    return sum;
  }
  HolderBytes& operator+=(const HolderBytes& more) {
    for (std::size_t holder = 0; holder < bytes.size(); ++holder)
      bytes[holder] += more.bytes[holder];
    return *this;
  }
  bool operator==(const HolderBytes&) const = default;
};

}  // namespace rematch
