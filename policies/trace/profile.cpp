#include "policies/trace/profile.h"

#include <algorithm>
#include <numeric>

#include "policies/base/hashing.h"

namespace rematch {
namespace {

using Problem = std::optional<std::string>;

std::string again(const Profile& profile) {
  return "; make the profile again: rematch profile --model " + profile.model;
}

std::string in_words(const std::map<std::string, std::int64_t>& dimensions) {
  std::string text;
  for (const auto& [name, value] : dimensions) {
    text.append(text.empty() ? "" : " ").append(name).append(" ").append(std::to_string(value));
  }
  return text.empty() ? "no dimensions" : text;
}

Problem other_model(const Profile& profile, const Trace& trace) {
  const auto differs = [](const std::string& what, const std::string& has,
                          const std::string& wanted) {
    return "the profile was made for " + what + has + ", not " + what + wanted;
  };
  if (profile.model != trace.model) return differs("model ", profile.model, trace.model);
  if (profile.dtype != trace.dtype) return differs("dtype ", profile.dtype, trace.dtype);
  for (const auto& [name, wanted] : trace.dimensions) {
    const auto found = profile.dimensions.find(name);
    if (found == profile.dimensions.end() || found->second == wanted) continue;
    return differs(name + " ", std::to_string(found->second), std::to_string(wanted));
  }
  if (profile.dimensions != trace.dimensions) {
    return differs("", in_words(profile.dimensions), in_words(trace.dimensions));
  }
  return std::nullopt;
}

template <class List>
bool has_size(const std::optional<List>& list, std::size_t size) {
  return !list || list->size() == size;
}

Profile::Duration sum(const std::vector<Profile::Duration>& times) {
  return std::accumulate(times.begin(), times.end(), Profile::Duration{});
}

}  // namespace

Profile::Duration Profile::forward_time() const { return sum(forward) + forward_between_ops; }

Profile::Duration Profile::backward_time() const { return sum(backward) + backward_between_ops; }

void repeat_micro_batch(Profile& profile, std::int64_t num) {
  for (Profile::Duration& time : profile.forward) time *= num;
  for (Profile::Duration& time : profile.backward) time *= num;
  profile.forward_between_ops *= num;
  profile.backward_between_ops *= num;
  if (!profile.forward_kernels) return;
  for (std::int32_t& kernels : *profile.forward_kernels) {
    kernels *= static_cast<std::int32_t>(num);
  }
}

std::string ops_sha256(const Trace& trace) {
  std::string names;
  const auto add = [&names](const std::string& name) {
    names.append(names.empty() ? "" : "\n").append(name);
  };
  for (const TracedOp& op : trace.ops) add(op.name);
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) add(event.op);
  }
  return sha256_hex(names);
}

std::optional<Bytes> most_temporary(const Profile& profile) {
  if (!profile.forward_temporary || !profile.backward_temporary) return std::nullopt;
  Bytes most;
  for (const Bytes bytes : *profile.forward_temporary) most = std::max(most, bytes);
  for (const Bytes bytes : *profile.backward_temporary) most = std::max(most, bytes);
  return most;
}

std::optional<std::string> profile_problem(const Profile& profile, const Trace& trace) {
  if (auto problem = other_model(profile, trace)) return *problem + again(profile);
  if (profile.trace_sha256.empty() && !profile.ops_sha256.empty()) {
    return "the profile's ops differ from the trace's ops (" + profile.ops_sha256.substr(0, 12) +
           "); make the trace and the profile again in one call";
  }
  if (profile.trace_sha256 != trace_sha256(trace)) {
    return "the profile was made for another trace of model " + trace.model + " (" +
           profile.trace_sha256.substr(0, 12) + ")" + again(profile);
  }
  const std::size_t num_backward_ops = num_ops(trace.backward);
  if (profile.forward.size() != trace.ops.size() || profile.backward.size() != num_backward_ops ||
      !has_size(profile.forward_temporary, trace.ops.size()) ||
      !has_size(profile.backward_temporary, num_backward_ops) ||
      !has_size(profile.forward_kernels, trace.ops.size())) {
    return "the profile has " + std::to_string(profile.forward.size()) + " forward and " +
           std::to_string(profile.backward.size()) + " backward ops, but its trace has " +
           std::to_string(trace.ops.size()) + " and " + std::to_string(num_backward_ops) +
           again(profile);
  }
  return std::nullopt;
}

}  // namespace rematch
