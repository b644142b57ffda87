// Who holds bytes at a moment of a step: what a peak is made of.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "policies/base/bytes.h"

namespace rematch {

enum class Holder : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kFrozenParameters,    // weights that do not learn
  kSavedActivations,    // kept from forward for backward, by autograd or by the engine
  kRecomputeTransient,  // made by recompute, not released yet
  kOther,               // batch, forward and backward temporaries
};

inline constexpr std::array kHolders = {Holder::kParameters,
                                        Holder::kGradients,
                                        Holder::kOptimizer,
                                        Holder::kFrozenParameters,
                                        Holder::kSavedActivations,
                                        Holder::kRecomputeTransient,
                                        Holder::kOther};

// The name in JSON: "saved_activations".
std::string_view to_string(Holder holder);
std::optional<Holder> holder_from_string(std::string_view text);

using HeldBytes = std::map<Holder, Bytes>;

}  // namespace rematch
