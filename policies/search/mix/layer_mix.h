// Chooses which option runs on which layer. Computes the exact front of peak against time over all
// assignments, including their order, and a lower bound. Knows only the figures of layers; front.h
// computes them from a trace.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// One way to run a layer, or several layers as one region.
struct LayerOption {
  Bytes held;  // held from its forward to the end of its backward
  // Most bytes during its backward; includes `held`, excludes gradients of later layers.
  Bytes transient;
  // Most bytes during its forward. Options from a trace leave it 0, because a layer's backward
  // holds what its forward held plus gradients. PointJudge, which simulates whole plans, sees any
  // exception.
  Bytes forward_transient;
  std::chrono::nanoseconds time{};  // on top of a step that keeps everything
  int num_layers = 1;
  // The lists of the covered layers, if they are not all this layer's list.
  std::vector<int> covers;
  // See Note [What a mix has on the host].
  Bytes offloaded;  // part of the transients, but not of `held`
  // Most bytes while the values offloaded by the layer before are back; at most `transient`.
  Bytes transient_beside;
  // It has no region, so bytes offloaded before it also count for the next layer.
  bool passes_on = true;
};

// Note [The peak of a mix]
// While a layer runs backward, all earlier layers still hold their bytes, and the gradients of all
// later layers exist. While the head runs, all layers hold their bytes. With forward order 0, 1,
// ... this means
//
//   peak = max(floor, head + sum of held, max over layers (held before it + its transient))
//
// This is Horner's scheme from the last layer to the first: Q = max(transient, held + Q). Later
// layers affect earlier ones only through Q. Labels are therefore pairs (Q, time) for any
// transients and gradients, without a third dimension.
//
// Note [What a mix has on the host]
// Values that a region offloads are off the device from the end of the next region's forward to the
// next region's first demand in backward. They count in the transients of their own layer. They
// also count in the layers after it, up to the next region. All layers without a region in between
// count them in full. The next region counts them in its `transient_beside`, which excludes what
// runs before the demand. Labels are kept apart by the bytes that the layers before them offload;
// few values differ. A region that offloads needs another region after it, because the step's last
// region offloads nothing.
struct MixProblem {
  std::vector<std::vector<LayerOption>> lists;  // one per kind of layer
  std::vector<int> list_of_layer;               // indexed by layer, in forward order
  // Bytes made by later layers when a layer's backward starts, indexed by layer. Empty: gradients
  // are alive anyway.
  std::vector<Bytes> gradients;
  Bytes head;   // between forward and backward, in addition to what the layers hold
  Bytes floor;  // needed by the step whatever the options
};

// An assignment. Lists for each option, in forward order, its index in the list of its first layer.
// An option of several layers covers adjacent layers.
struct LayerMix {
  Bytes peak;
  std::chrono::nanoseconds time{};
  std::vector<int> options;
};

struct MixFront {
  std::vector<LayerMix> points;  // sorted by ascending peak; times descend
  // No mix is faster by more than this than the listed mix of at most its peak. The front is exact
  // if this is 0.
  std::chrono::nanoseconds time_gap{};
};

inline constexpr std::size_t kMaxMixLabels = 50'000;  // per layer; above it, labels are thinned
// `stop` is polled at every layer. Once it returns true, only few labels are kept, so that mixing
// ends soon.
MixFront mix_layers(const MixProblem& problem, std::size_t max_labels = kMaxMixLabels,
                    const std::function<bool()>& stop = {});

// Computes the peak from its definition. `mix` must cover all layers. Returns nullopt if its last
// region offloads.
std::optional<Bytes> peak_of_mix(const MixProblem& problem, const std::vector<int>& mix);

// Returns the times that no mix can beat at a peak, as if options were divisible. They form a
// convex curve through its corners, flat after the last; no mix has a peak below the first corner.
// Assumes that offloaded values are on the device only during their own layer's backward.
struct BoundCorner {
  double peak_bytes = 0;
  double time_ns = 0;
};
std::vector<BoundCorner> mix_lower_bound(const MixProblem& problem);
std::chrono::nanoseconds bound_at(const std::vector<BoundCorner>& bound, Bytes peak);

// Returns the options on the convex hulls of (held, time) and of (transient, time), per layer. This
// small list keeps nearly all of the front.
std::vector<std::size_t> hull_options(const std::vector<LayerOption>& options);

// Returns the same options in an order that people can read, with equal ones adjacent and a peak
// that is not higher. Layers change places only with neighbours of their own list.
LayerMix in_readable_order(const MixProblem& problem, const LayerMix& mix);

}  // namespace rematch
