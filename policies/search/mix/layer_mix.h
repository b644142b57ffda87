// Which option on which layer: the exact front of peak against time over all assignments of options
// to layers, order included, and a lower bound. Knows layers only by their figures; front.h makes
// them from a trace.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// A way to run one layer, or several as one region.
struct LayerOption {
  Bytes held;       // from its forward to the end of its backward
  Bytes transient;  // most during its backward: held included, gradients of later layers not
  // Most during its forward. Options of a trace leave it 0: a layer's backward holds what its
  // forward held and gradients beside it, and whoever judges a whole plan sees the exception.
  Bytes forward_transient;
  std::chrono::nanoseconds time{};  // on top of a step that keeps everything
  int num_layers = 1;
  // The lists of the layers that it covers, if they are not all its own.
  std::vector<int> covers;
  // See Note [What a mix has on the host].
  Bytes offloaded;         // part of the transients, not of what is held
  Bytes transient_beside;  // most while what the layer before offloads is back; up to `transient`
  bool passes_on = true;   // it has no region
};

// Note [The peak of a mix]
// While a layer runs backward, all earlier layers still hold what they hold and the gradients of
// all later ones are born; when the head runs, all layers hold. So with forward order 0, 1, ...
//
//   peak = max(floor, head + sum of held, max over layers (held before it + its transient))
//
// which is Horner's scheme from the last layer to the first, Q = max(transient, held + Q). What
// later layers do matters to earlier ones only through Q: labels are pairs (Q, time), whatever the
// transients and the gradients are, and no third dimension is needed.
//
// Note [What a mix has on the host]
// Data a region offloads is away from the end of the next region's forward to the next region's
// first demand in backward. So beside the transients of its own layer it counts in those of the
// layers behind it, as far back as the next region's: in its `transient_beside`, which leaves out
// what runs before that demand, and in all of the layers without a region that lie between. Labels
// are kept apart by the bytes that the layers before them offload; few values are different. A
// region that offloads has another one behind it, for the step's last one moves nothing.
struct MixProblem {
  std::vector<std::vector<LayerOption>> lists;  // one for each kind of layer
  std::vector<int> list_of_layer;               // by layer, in forward order
  // By layer: born by later layers when its backward starts. Empty: gradients are alive anyway.
  std::vector<Bytes> gradients;
  Bytes head;   // between forward and backward, beside what the layers hold
  Bytes floor;  // what the step needs whatever the options
};

// An assignment: for each option in forward order its index in its first layer's list. An option of
// several layers covers neighbours.
struct LayerMix {
  Bytes peak;
  std::chrono::nanoseconds time{};
  std::vector<int> options;
};

struct MixFront {
  std::vector<LayerMix> points;  // by peak, ascending; times descend
  // No mix is faster by more than this than the listed one of at most its peak. 0: exact.
  std::chrono::nanoseconds time_gap{};
};

inline constexpr std::size_t kMaxMixLabels = 50'000;  // a layer; past it labels are thinned
// `stop`, asked at every layer: once it says true few labels are kept, so that the end is near.
MixFront mix_layers(const MixProblem& problem, std::size_t max_labels = kMaxMixLabels,
                    const std::function<bool()>& stop = {});

// By the definition of the peak. `mix` covers all layers. Nothing: its last region offloads.
std::optional<Bytes> peak_of_mix(const MixProblem& problem, const std::vector<int>& mix);

// Times that no mix can beat at a peak, were options divisible: a convex curve through its corners,
// flat behind the last; there is no mix below the first corner's peak. Takes what is offloaded to
// be on the device in its own layer's backward alone.
struct BoundCorner {
  double peak_bytes = 0;
  double time_ns = 0;
};
std::vector<BoundCorner> mix_lower_bound(const MixProblem& problem);
std::chrono::nanoseconds bound_at(const std::vector<BoundCorner>& bound, Bytes peak);

// Which options lie on the convex hulls of (held, time) and (transient, time), per layer: a small
// list that keeps nearly all of the front.
std::vector<std::size_t> hull_options(const std::vector<LayerOption>& options);

// The same options in an order that a person can read, equal ones side by side, with a peak that is
// not higher. Layers change places only with neighbours of their own list.
LayerMix in_readable_order(const MixProblem& problem, const LayerMix& mix);

}  // namespace rematch
