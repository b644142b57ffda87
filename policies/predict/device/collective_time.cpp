#include "policies/predict/device/collective_time.h"

#include <algorithm>

#include "policies/predict/device/roofline.h"

namespace rematch {
namespace {

constexpr std::int64_t kManyRanks = 1'000'000;

struct Sides {
  Bytes in;
  Bytes out;
};

Sides sides_of(const Trace& trace, const TracedOp& op) {
  Sides sides;
  for (const TracedUse& input : op.inputs) sides.in += value_bytes(trace, input.value);
  for (const ValueId output : op.outputs) sides.out += value_bytes(trace, output);
  return sides;
}

std::optional<std::int64_t> ranks_of_group(const Trace& trace, const std::string& group) {
  const auto found = trace.dimensions.find(group);
  if (found == trace.dimensions.end() || found->second <= 0) return std::nullopt;
  return found->second;
}

// A shift of ring attention sends the whole tensor to one rank.
bool is_shift(CollectiveKind kind, const std::string& group) {
  return kind == CollectiveKind::kAllToAll && group == "cp";
}

}  // namespace

Bytes sent_bytes(CollectiveKind kind, Bytes whole, std::int64_t ranks) {
  if (kind == CollectiveKind::kBroadcast) return whole;
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const double times = kind == CollectiveKind::kAllReduce ? 2 : 1;
  return Bytes{static_cast<std::int64_t>(times * share * static_cast<double>(whole.count))};
}

Bytes whole_bytes(const Trace& trace, const TracedOp& op) {
  const Sides sides = sides_of(trace, op);
  return std::max(sides.in, sides.out);
}

std::optional<std::int64_t> ranks_of(const Trace& trace, const TracedOp& op) {
  if (const auto ranks = ranks_of_group(trace, op.group)) return ranks;
  const Sides sides = sides_of(trace, op);
  const Bytes part = std::min(sides.in, sides.out);
  if (part.count == 0 || sides.in == sides.out) return std::nullopt;
  return std::max(sides.in, sides.out).count / part.count;
}

std::optional<Bytes> sent_bytes(const Trace& trace, const TracedOp& op) {
  const auto kind = collective_kind(op.name);
  if (!kind) return std::nullopt;
  if (is_shift(*kind, op.group)) return whole_bytes(trace, op);
  return sent_bytes(*kind, whole_bytes(trace, op), ranks_of(trace, op).value_or(kManyRanks));
}

std::optional<Bytes> sent_bytes(const Trace& trace, const BackwardEvent& event) {
  return sent_bytes(trace, TracedCollective{event.op, event.group, event.collective_bytes});
}

std::optional<Bytes> sent_bytes(const Trace& trace, const TracedCollective& collective) {
  const auto kind = collective_kind(collective.op);
  if (!kind) return std::nullopt;
  if (is_shift(*kind, collective.group)) return collective.bytes;
  return sent_bytes(*kind, collective.bytes,
                    ranks_of_group(trace, collective.group).value_or(kManyRanks));
}

}  // namespace rematch
