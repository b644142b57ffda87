#include "policies/predict/device/project_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "policies/trace/spans.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

// The forward or backward pass of a trace. `ops` has a description of each op; ops with equal
// descriptions are assumed to take equal time.
struct Pass {
  std::vector<TypedSpan> spans;
  std::vector<std::string> ops;
};

std::string op_in_words(const Trace& trace, const TracedOp& op) {
  std::string words = op.name;
  for (const ValueId output : op.outputs) {
    const TracedValue& value = trace.values[output];
    words.append(" ").append(value.dtype);
    for (const std::int64_t size : value.shape) words.append(" ").append(std::to_string(size));
  }
  return words;
}

Pass forward_pass(const Trace& trace, const SpannedTrace& spanned) {
  Pass pass{forward_spans(spanned), {}};
  for (const TracedOp& op : trace.ops) pass.ops.push_back(op_in_words(trace, op));
  return pass;
}

Pass backward_pass(const Trace& trace, const SpannedTrace& spanned) {
  Pass pass{backward_spans(spanned), {}};
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) pass.ops.push_back(event.op);
  }
  return pass;
}

bool are_alike(const Pass& a, const TypedSpan& of_a, const Pass& b, const TypedSpan& of_b) {
  const auto first = [](const Pass& pass, const TypedSpan& span) {
    return pass.ops.begin() + static_cast<std::ptrdiff_t>(span.first);
  };
  return of_a.length == of_b.length &&
         std::equal(first(a, of_a), first(a, of_a) + static_cast<std::ptrdiff_t>(of_a.length),
                    first(b, of_b));
}

// Returns the index of the measured span that is used for span `index` of a larger model.
std::size_t counterpart(std::size_t index, std::size_t num_few, std::size_t num_many) {
  const std::size_t from_end = num_many - 1 - index;
  if (index < num_few / 2) return index;
  return from_end < num_few / 2 ? num_few - 1 - from_end : num_few / 2;
}

// Returns the measured span that runs the same ops as `span`, or null. If there are several,
// returns the one nearest to index `likely`.
const TypedSpan* find_alike(const Pass& many, const TypedSpan& span, const Pass& few,
                            std::size_t likely) {
  const TypedSpan* found = nullptr;
  std::size_t least_distance = 0;
  for (std::size_t i = 0; i < few.spans.size(); ++i) {
    const std::size_t distance = i > likely ? i - likely : likely - i;
    if (found != nullptr && distance >= least_distance) continue;
    if (!are_alike(many, span, few, few.spans[i])) continue;
    found = &few.spans[i];
    least_distance = distance;
  }
  return found;
}

struct OpFigures {
  std::vector<Duration> times;
  std::optional<std::vector<Bytes>> temporary;
  std::optional<std::vector<std::int32_t>> kernels;
};

// Returns the figures of the larger model's pass. Returns nullopt if a span has no counterpart;
// `missing` is then the first op of that span.
std::optional<OpFigures> project_pass(const OpFigures& figures, const Pass& few, const Pass& many,
                                      std::size_t& missing) {
  OpFigures projected;
  if (figures.temporary) projected.temporary.emplace();
  if (figures.kernels) projected.kernels.emplace();
  const auto append = [](const auto& source, const TypedSpan& span, auto& target) {
    const auto first = source.begin() + static_cast<std::ptrdiff_t>(span.first);
    target.insert(target.end(), first, first + static_cast<std::ptrdiff_t>(span.length));
  };
  for (std::size_t i = 0; i < many.spans.size(); ++i) {
    const TypedSpan& span = many.spans[i];
    if (span.length == 0) continue;
    const std::size_t likely = counterpart(i, few.spans.size(), many.spans.size());
    const TypedSpan* alike = find_alike(many, span, few, likely);
    if (alike == nullptr) {
      missing = span.first;
      return std::nullopt;
    }
    append(figures.times, *alike, projected.times);
    if (projected.temporary) append(*figures.temporary, *alike, *projected.temporary);
    if (projected.kernels) append(*figures.kernels, *alike, *projected.kernels);
  }
  return projected;
}

Duration scaled(Duration time, double ratio) {
  return Duration(std::llround(static_cast<double>(time.count()) * ratio));
}

double num_elements(const Trace& trace) {
  double elements = 0;
  for (const TracedParameters& group : trace.parameters) {
    elements += static_cast<double>(group.elements) * static_cast<double>(group.count);
  }
  return elements;
}

double ratio(double many, double few) { return few > 0 ? many / few : 1; }

// Returns the path of the layer that contains the scope.
std::string place_of(const Trace& trace, std::optional<ScopeId> scope) {
  for (; scope; scope = trace.scopes[*scope].parent) {
    const auto is_block = [&](const TracedBlock& block) { return block.scope == scope; };
    if (std::any_of(trace.blocks.begin(), trace.blocks.end(), is_block)) {
      return trace.scopes[*scope].path;
    }
  }
  return "the part outside the layers";
}

std::optional<ScopeId> scope_of_backward_op(const Trace& trace, std::size_t op) {
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp && op-- == 0) return event.scope;
  }
  return std::nullopt;
}

Rejected no_layer_like(const std::string& place, int measured_layers) {
  return {place + " differs from every measured layer; measure more than " +
          std::to_string(measured_layers) + " layers, so that every kind of layer is measured"};
}

}  // namespace

std::variant<Profile, Rejected> project_profile(const Profile& measured, const Trace& few,
                                                const Trace& many, int measured_layers) {
  const SpannedTrace cut_few = cut_into_spans(few);
  const SpannedTrace cut_many = cut_into_spans(many);
  std::size_t missing = 0;
  auto forward =
      project_pass({measured.forward, measured.forward_temporary, measured.forward_kernels},
                   forward_pass(few, cut_few), forward_pass(many, cut_many), missing);
  if (!forward)
    return no_layer_like(place_of(many, many.ops[OpId(missing)].scope), measured_layers);
  auto backward = project_pass({measured.backward, measured.backward_temporary, std::nullopt},
                               backward_pass(few, cut_few), backward_pass(many, cut_many), missing);
  if (!backward)
    return no_layer_like("backward of " + place_of(many, scope_of_backward_op(many, missing)),
                         measured_layers);
  Profile projected = measured;
  projected.dimensions = many.dimensions;
  projected.trace_sha256 = trace_sha256(many);
  projected.measured_layers = measured_layers;
  const auto growth = [](const auto& now, const auto& before) {
    return ratio(static_cast<double>(now.size()), static_cast<double>(before.size()));
  };
  projected.forward_between_ops =
      scaled(measured.forward_between_ops, growth(forward->times, measured.forward));
  projected.backward_between_ops =
      scaled(measured.backward_between_ops, growth(backward->times, measured.backward));
  projected.optimizer = scaled(measured.optimizer, ratio(num_elements(many), num_elements(few)));
  projected.forward = std::move(forward->times);
  projected.forward_temporary = std::move(forward->temporary);
  projected.forward_kernels = std::move(forward->kernels);
  projected.backward = std::move(backward->times);
  projected.backward_temporary = std::move(backward->temporary);
  return projected;
}

}  // namespace rematch
