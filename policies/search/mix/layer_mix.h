// Chooses an option for each layer. Computes the exact front of peak against time over all
// assignments of options to layers, and a lower bound.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// A way to run a layer, or to run several layers as one region.
struct LayerOption {
  Bytes held;  // bytes held from the layer's forward to the end of its backward
  // Most bytes during the layer's backward. Includes `held`, and excludes gradients of later
  // layers.
  Bytes transient;
  // Most bytes during the layer's forward. Options made from a trace leave it 0, because backward
  // of a layer normally has the higher peak.
  Bytes forward_transient;
  std::chrono::nanoseconds time{};  // additional time compared with a step that keeps everything
  int num_layers = 1;
  // for each covered layer, the index of its list of options; empty: all have the list of the first
  // layer
  std::vector<int> covers;
  // For the next three members see Note [Offloading in a mix].
  Bytes offloaded;  // included in `transient`, but not in `held`
  // Like `transient`, but only from the time when the previous layer's offloaded values are back on
  // the device.
  Bytes transient_beside;
  // True if the option has no region. Values that earlier layers offload then stay on the device
  // until a later layer with a region ends.
  bool passes_on = true;
};

// Note [The peak of a mix] While a layer runs backward, all earlier layers still hold their bytes,
// and the gradients of all later layers exist. While the head runs, all layers hold their bytes. If
// layers are numbered in forward order, this means:
//
//   peak = max(floor, head + sum of held, max over layers (held before it + its transient))
//
// The maximum can be computed by Horner's scheme from the last layer to the first: Q =
// max(transient, held + Q). Later layers affect earlier ones only through Q. Labels are therefore
// pairs (Q, time), without a third dimension. This works for any transients and gradients.
//
// Note [Offloading in a mix] A region's offloaded values leave the device when forward of
// the next region ends. They return when backward first demands a tensor of the next region. Until
// they leave, and after they return, they count as device memory in the transients of their own
// layer, and of following layers without a region. The next region counts them in
// `transient_beside` only. Labels are grouped by the bytes that earlier layers offload. There are
// few such groups. The step's last region offloads nothing.
struct MixProblem {
  std::vector<std::vector<LayerOption>> lists;  // one list of options per kind of layer
  std::vector<int> list_of_layer;               // indexed by layer, in forward order
  // Bytes that backward of later layers has allocated when a layer's backward starts, indexed by
  // layer. Empty: gradients are alive for the whole step, so they do not count.
  std::vector<Bytes> gradients;
  Bytes head;   // bytes that are held between forward and backward, but not by a layer
  Bytes floor;  // lower bound of the step's peak that holds for every mix
};

// An assignment of options to layers. `options` has one entry for each option, in forward order: an
// index into the list of the first layer that the option covers.
struct LayerMix {
  Bytes peak;
  std::chrono::nanoseconds time{};
  std::vector<int> options;
};

struct MixFront {
  std::vector<LayerMix> points;  // sorted by ascending peak; times descend
  // For every mix, some listed mix has at most the same peak and is slower by at most this time.
  // The front is exact if this is 0.
  std::chrono::nanoseconds time_gap{};
};

// maximum number of labels per layer; additional labels are thinned out
inline constexpr std::size_t kMaxMixLabels = 50'000;

// Callbacks during mixing. Each function may be empty.
struct MixWatch {
  // Polled before every layer. Once it returns true, mixing keeps only a few labels, so that it
  // ends soon.
  std::function<bool()> stop;
  std::function<void(int layers_done, int num_layers)> on_layer;  // called after every layer
};

MixFront mix_layers(const MixProblem& problem, std::size_t max_labels = kMaxMixLabels,
                    const MixWatch& watch = {});

// Computes the peak of a mix by its definition. `mix` must cover all layers. Returns nullopt if the
// last region of the mix offloads.
std::optional<Bytes> peak_of_mix(const MixProblem& problem, const std::vector<int>& mix);

// A corner of the lower bound. For each peak, the bound gives a time that no mix can beat. It is a
// convex curve that is flat after the last corner. No mix has a peak below the first corner.
struct BoundCorner {
  double peak_bytes = 0;
  double time_ns = 0;
};
std::vector<BoundCorner> mix_lower_bound(const MixProblem& problem);
std::chrono::nanoseconds bound_at(const std::vector<BoundCorner>& bound, Bytes peak);

// Returns the indices of the options on the convex hull of (held, time) or of (transient, time).
// This small list keeps nearly all of the front.
std::vector<std::size_t> hull_options(const std::vector<LayerOption>& options);

// Returns the same options in an order that is easy to read. The peak does not increase. Options
// change places only between neighbouring layers with the same list.
LayerMix in_readable_order(const MixProblem& problem, const LayerMix& mix);

}  // namespace rematch
