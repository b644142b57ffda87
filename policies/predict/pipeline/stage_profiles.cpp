#include "policies/predict/pipeline/stage_profiles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rematch {
namespace {

using Duration = Profile::Duration;

std::vector<std::string_view> backward_ops(const Trace& trace) {
  std::vector<std::string_view> names;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) names.push_back(event.op);
  }
  return names;
}

// Returns the op's name as if it were not in place. The gradient of a stage's output is held by the
// stage, so backward adds to it in a new tensor, where backward of a whole model adds in place.
std::string without_place(std::string_view op) {
  std::string name(op);
  const std::size_t end = std::min(name.find('.'), name.size());
  if (end > 0 && name[end - 1] == '_') name.erase(end - 1, 1);
  return name;
}

// Whether `part` stands in `whole` at `first`.
bool stands_at(std::size_t first, const std::vector<std::string_view>& part,
               const std::vector<std::string_view>& whole) {
  if (first + part.size() > whole.size()) return false;
  for (std::size_t op = 0; op < part.size(); ++op) {
    if (without_place(part[op]) != without_place(whole[first + op])) return false;
  }
  return true;
}

std::vector<std::string_view> forward_ops(const Trace& trace) {
  std::vector<std::string_view> names;
  for (const TracedOp& op : trace.ops) names.push_back(op.name);
  return names;
}

Rejected other_ops(std::size_t stage, const char* phase) {
  return Rejected{"the profile is of the whole model, but stage " + std::to_string(stage) +
                  " runs other ops in " + phase +
                  "; use the data sheet of a card with --device h100"};
}

template <class Items, class Index>
void take(const Items& from, std::size_t first, std::size_t num, Index, Items& to) {
  to = Items();
  for (std::size_t op = first; op < first + num; ++op) to.push_back(from[Index(op)]);
}

// Copies the figures of the ops [first, first + num) of forward and of backward.
Profile part_of(const Profile& profile, std::size_t first, std::size_t num,
                std::size_t first_backward, std::size_t num_backward) {
  Profile part = profile;
  take(profile.forward, first, num, OpId(), part.forward);
  take(profile.backward, first_backward, num_backward, std::size_t(), part.backward);
  if (profile.forward_temporary) {
    take(*profile.forward_temporary, first, num, OpId(), *part.forward_temporary);
  }
  if (profile.backward_temporary) {
    take(*profile.backward_temporary, first_backward, num_backward, std::size_t(),
         *part.backward_temporary);
  }
  if (profile.forward_kernels) {
    take(*profile.forward_kernels, first, num, OpId(), *part.forward_kernels);
  }
  return part;
}

Duration share_of(Duration whole, double share) {
  return Duration(std::llround(static_cast<double>(whole.count()) * share));
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::variant<std::vector<Profile>, Rejected> stage_profiles(
    const Profile& profile, const Trace& whole, const std::vector<const Trace*>& stages) {
  const std::vector<std::string_view> forward = forward_ops(whole);
  const std::vector<std::string_view> backward = backward_ops(whole);
  std::vector<Profile> profiles;
  std::size_t first = 0;
  std::size_t end_backward = backward.size();
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Trace& trace = *stages[stage];
    const std::vector<std::string_view> own = forward_ops(trace);
    const std::vector<std::string_view> own_backward = backward_ops(trace);
    if (!stands_at(first, own, forward)) return other_ops(stage, "forward");
    if (own_backward.size() > end_backward) return other_ops(stage, "backward");
    end_backward -= own_backward.size();
    if (!stands_at(end_backward, own_backward, backward)) return other_ops(stage, "backward");
    Profile part = part_of(profile, first, own.size(), end_backward, own_backward.size());
    first += own.size();
    const double forward_share = ratio(std::ssize(own), std::ssize(forward));
    const double backward_share = ratio(std::ssize(own_backward), std::ssize(backward));
    const double parameter_share = ratio(trace.parameter_bytes.count, whole.parameter_bytes.count);
    part.forward_between_ops = share_of(profile.forward_between_ops, forward_share);
    part.backward_between_ops = share_of(profile.backward_between_ops, backward_share);
    part.optimizer = share_of(profile.optimizer, parameter_share);
    part.gradient_sums = share_of(profile.gradient_sums, parameter_share);
    part.dimensions = trace.dimensions;
    part.trace_sha256 = trace_sha256(trace);
    part.ops_sha256.clear();
    profiles.push_back(std::move(part));
  }
  if (first != forward.size()) return other_ops(stages.size() - 1, "forward");
  if (end_backward != 0) return other_ops(0, "backward");
  return profiles;
}

}  // namespace rematch
