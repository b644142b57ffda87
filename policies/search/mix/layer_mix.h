// Chooses an option for each layer. Computes the exact front of peak against time over all
// assignments of options to layers, and a lower bound. The order of the options matters. Knows only
// the figures of layers; front.h computes these from a trace.
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
  // Most bytes during the layer's forward. Options from a trace leave this member 0, because a
  // layer's backward normally holds the bytes of its forward plus gradients. If a backward holds
  // less, PointJudge still computes the right peak, because it simulates whole plans.
  Bytes forward_transient;
  std::chrono::nanoseconds time{};  // additional time compared with a step that keeps everything
  int num_layers = 1;
  // The index of each covered layer's list of options. Empty: all covered layers have the list of
  // the first layer.
  std::vector<int> covers;
  // The next three members are explained in Note [What a mix has on the host].
  Bytes offloaded;  // included in the transients, but not in `held`
  // Most bytes while the offloaded values of the previous layer are back on the device. At most
  // `transient`.
  Bytes transient_beside;
  // True if the option has no region. The bytes that earlier layers offload then count for the next
  // layer too.
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
// Note [What a mix has on the host] Values that a region offloads leave the device at the end of
// the next region's forward. They come back at the next region's first demand in backward. While
// they are on the device, they count in transients: in full for their own layer, and in full for
// layers without a region that follow it. The next region counts them only in `transient_beside`,
// which excludes the time before its first demand. Labels are grouped by the bytes that the layers
// before them offload; only a few such values exist. A region that offloads needs a region after
// it, because the step's last region offloads nothing.
struct MixProblem {
  std::vector<std::vector<LayerOption>> lists;  // one list of options per kind of layer
  std::vector<int> list_of_layer;               // indexed by layer, in forward order
  // Bytes that backward of later layers has allocated when a layer's backward starts, indexed by
  // layer. Empty: gradients are alive for the whole step, so they do not count.
  std::vector<Bytes> gradients;
  Bytes head;   // bytes between forward and backward that no layer holds
  Bytes floor;  // lower bound of the step's peak for all choices of options
};

// An assignment of options to layers. Lists the options in forward order. Each entry is an index
// into the list of the option's first layer. An option of several layers covers adjacent layers.
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

// Callbacks for the progress and the early end of mixing. Each function may be empty.
struct MixWatch {
  // Polled before every layer. Once it returns true, only a few labels are kept, so that mixing
  // ends soon.
  std::function<bool()> stop;
  std::function<void(int layers_done, int num_layers)> on_layer;  // called after every layer
};

MixFront mix_layers(const MixProblem& problem, std::size_t max_labels = kMaxMixLabels,
                    const MixWatch& watch = {});

// Computes the peak of a mix by its definition. `mix` must cover all layers. Returns nullopt if the
// last region of the mix offloads.
std::optional<Bytes> peak_of_mix(const MixProblem& problem, const std::vector<int>& mix);

// A corner of the lower bound, which gives for each peak a time that no mix can beat. The bound
// treats options as divisible. The bound is a convex curve through its corners and flat after the
// last corner. No mix has a peak below the first corner. The bound assumes that offloaded values
// are on the device only during their own layer's backward.
struct BoundCorner {
  double peak_bytes = 0;
  double time_ns = 0;
};
std::vector<BoundCorner> mix_lower_bound(const MixProblem& problem);
std::chrono::nanoseconds bound_at(const std::vector<BoundCorner>& bound, Bytes peak);

// Returns the indices of the options on the convex hull of (held, time) or of (transient, time).
// This small list keeps nearly all of the front.
std::vector<std::size_t> hull_options(const std::vector<LayerOption>& options);

// Returns the same options in an order that is easy to read, with equal options adjacent. The peak
// does not increase. Options change places only between neighbouring layers with the same list.
LayerMix in_readable_order(const MixProblem& problem, const LayerMix& mix);

}  // namespace rematch
