#include "policies/predict/device/roofline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

#include "policies/predict/device/collective_time.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/fused_ops.h"

namespace rematch {
namespace {

std::int64_t bytes_in_element(std::string_view dtype) {
  if (dtype == "bool" || dtype == "uint8" || dtype == "int8") return 1;
  if (dtype == "bfloat16" || dtype == "float16" || dtype == "int16") return 2;
  if (dtype == "int64" || dtype == "float64") return 8;
  return 4;
}

bool is_half(std::string_view dtype) { return dtype == "bfloat16" || dtype == "float16"; }

double rate_of(const DeviceSheet& sheet, std::string_view dtype) {
  return is_half(dtype) ? sheet.bfloat16_flops_per_second : sheet.float32_flops_per_second;
}

Profile::Duration in_nanoseconds(double seconds) {
  constexpr double kNanosecondsInSecond = 1e9;
  return Profile::Duration(static_cast<std::int64_t>(std::ceil(seconds * kNanosecondsInSecond)));
}

// Bytes and FLOPs per second of an op. Arithmetic and traffic overlap.
struct OpRates {
  double flops_per_second;
  double bytes_per_second;
};

Profile::Duration time_of(const OpRates& rates, std::int64_t flops, Bytes moved) {
  const double arithmetic = static_cast<double>(flops) / rates.flops_per_second;
  const double traffic = static_cast<double>(moved.count) / rates.bytes_per_second;
  return in_nanoseconds(std::max(arithmetic, traffic));
}

std::string_view dtype_of(const Trace& trace, const TracedOp& op) {
  if (op.inputs.empty()) return trace.dtype;
  return trace.values[op.inputs.front().value].dtype;
}

// FLOPs of attention's backward, relative to its forward
constexpr double kAttentionBackwardFlops = 2.5;

// The fused loss. Its backward computes the logits again, and so has three matmuls.
constexpr std::string_view kLoss = "rematch::linear_cross_entropy";
// The same with logits that forward keeps.
constexpr std::string_view kLossWithLogits = "rematch::linear_cross_entropy_with_logits";

bool is_fused_loss(const TracedOp& op) { return op.name == kLoss || op.name == kLossWithLogits; }

// Returns the bytes that AdamW (harness/training) moves beyond optimizer_moved_bytes(). Without
// fused ops it writes gradients in float32 and reads them again, and reads each master copy once
// more for the parameter.
Bytes conversion_bytes(const Trace& trace) {
  constexpr std::int64_t kFloat32 = 4;
  if (is_built_with_fused_ops(trace)) return {};
  Bytes moved;
  for (const TracedParameters& kind : trace.parameters) {
    if (kind.dtype == "float32") continue;
    const std::int64_t gradient = has_float32_gradients(trace) ? 0 : 2 * kFloat32;
    moved += Bytes{kind.count * kind.elements * (gradient + kFloat32)};
  }
  return moved;
}

// Returns the bytes of the logits of all classes. The fused loss holds one chunk of them at a time.
Bytes logits_bytes(const Trace& trace, const TracedOp& op) {
  const TracedValue& x = trace.values[op.inputs.at(0).value];
  const TracedValue& weight = trace.values[op.inputs.at(1).value];
  return Bytes{bytes_in_element(x.dtype) * x.shape.front() * weight.shape.front()};
}

struct Rates {
  const DeviceSheet& sheet;
  const LinkProfile* links;  // null: use the link rate of the data sheet
  const Ceilings* ceilings;  // null: use the rates of the data sheet
};

OpRates rates_of(const DeviceSheet& sheet, std::string_view dtype) {
  return {rate_of(sheet, dtype), sheet.memory_bytes_per_second};
}

// See Note [Which rate prices an op].
OpRates rates_of(const Rates& rates, const TracedOp& op, std::string_view dtype) {
  if (rates.ceilings == nullptr) return rates_of(rates.sheet, dtype);
  const Ceilings& ceilings = *rates.ceilings;
  const double matmul = is_half(dtype)
                            ? ceilings.matmul
                            : ceilings.float32_matmul.value_or(rate_of(rates.sheet, dtype));
  if (op.op_class == OpClass::kAttentionForward && is_half(dtype)) {
    return {ceilings.attention_forward.value_or(matmul), ceilings.copy};
  }
  const bool is_one_kernel = op.flops > 0 || op.name.starts_with("rematch::");
  return {matmul, is_one_kernel ? ceilings.copy : ceilings.elementwise.value_or(ceilings.copy)};
}

TracedCollective collective_of(const Trace& trace, const TracedOp& op) {
  return {op.name, op.group, whole_bytes(trace, op)};
}
TracedCollective collective_of(const Trace& /*trace*/, const BackwardEvent& event) {
  return {event.op, event.group, event.collective_bytes};
}
TracedCollective collective_of(const Trace& /*trace*/, const TracedCollective& sum) { return sum; }

// Returns the time of a collective, or nullopt for an op that does not start one.
template <class Collective>
std::optional<Profile::Duration> time_on_link(const Rates& rates, const Trace& trace,
                                              const Collective& collective) {
  const std::optional<Bytes> sent = sent_bytes(trace, collective);
  if (!sent) return std::nullopt;
  if (rates.links != nullptr) {
    return measured_time(*rates.links, collective_of(trace, collective));
  }
  return in_nanoseconds(static_cast<double>(sent->count) / rates.sheet.link_bytes_per_second);
}

// The matmul of the fused loss, which writes the logits. The loss reads them in a kernel of its
// own.
struct LossTimes {
  Profile::Duration matmul, pass_over_logits;
};

LossTimes loss_times(const Rates& rates, const Trace& trace, const TracedOp& op) {
  const OpRates of_loss = rates_of(rates, op, dtype_of(trace, op));
  const Bytes logits = logits_bytes(trace, op);
  const Bytes operands =
      value_bytes(trace, op.inputs.at(0).value) + value_bytes(trace, op.inputs.at(1).value);
  return {time_of(of_loss, op.flops, operands + logits), time_of(of_loss, 0, logits)};
}

Profile::Duration time_of(const Rates& rates, const Trace& trace, const TracedOp& op) {
  if (collective_part(op.name) == CollectivePart::kWait) return {};
  if (const auto time = time_on_link(rates, trace, op)) return *time;
  if (is_fused_loss(op)) {
    const LossTimes loss = loss_times(rates, trace, op);
    return loss.matmul + loss.pass_over_logits;
  }
  return time_of(rates_of(rates, op, dtype_of(trace, op)), op.flops, moved_bytes(trace, op));
}

// Backward reads the logits and writes their gradients before the matmuls of both gradients.
Profile::Duration backward_time_of_loss(const Rates& rates, const Trace& trace,
                                        const TracedOp& op) {
  const LossTimes loss = loss_times(rates, trace, op);
  const int num_matmuls = op.name == kLoss ? 3 : 2;
  return num_matmuls * loss.matmul + 2 * loss.pass_over_logits;
}

// Returns the time of the op's backward. `forward` is the time of the op itself.
Profile::Duration backward_time(const Rates& rates, const Trace& trace, const TracedOp& op,
                                Profile::Duration forward) {
  if (rates.ceilings == nullptr) return 2 * forward;
  if (is_fused_loss(op)) return backward_time_of_loss(rates, trace, op);
  const std::optional<double> attention = rates.ceilings->attention_backward;
  const bool is_attention = op.op_class == OpClass::kAttentionForward;
  if (!is_attention || !attention || !is_half(dtype_of(trace, op))) return 2 * forward;
  return in_nanoseconds(kAttentionBackwardFlops * static_cast<double>(op.flops) / *attention);
}

// Returns the time of AdamW's step.
Profile::Duration optimizer_time(const Rates& rates, const Trace& trace) {
  OpRates optimizer = rates_of(rates.sheet, trace.dtype);
  Bytes moved = optimizer_moved_bytes(trace);
  if (const Ceilings* ceilings = rates.ceilings) {
    optimizer.bytes_per_second = is_built_with_fused_ops(trace)
                                     ? ceilings->copy
                                     : ceilings->elementwise.value_or(ceilings->copy);
    moved += conversion_bytes(trace);
  }
  return time_of(optimizer, 0, moved);
}

bool computes(std::string_view op) {
  const CollectivePart part = collective_part(op);
  return part != CollectivePart::kStart && part != CollectivePart::kWait;
}

// Returns the times of the ops of backward: see roofline_profile().
std::vector<Profile::Duration> backward_times(const Rates& rates, const Trace& trace,
                                              const IdTable<OpId, Profile::Duration>& forward) {
  struct OfScope {
    Profile::Duration time{};
    std::int64_t num_events = 0;
  };
  std::map<std::optional<ScopeId>, OfScope> scopes;
  for (const OpId op : trace.ops.ids()) {
    if (!computes(trace.ops[op].name)) continue;
    scopes[trace.ops[op].scope].time += backward_time(rates, trace, trace.ops[op], forward[op]);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp || !computes(event.op)) continue;
    ++scopes[event.scope].num_events;
  }
  std::vector<Profile::Duration> times;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    if (!computes(event.op)) {
      times.push_back(time_on_link(rates, trace, event).value_or(Profile::Duration{}));
      continue;
    }
    const OfScope& scope = scopes[event.scope];
    times.push_back(scope.time / scope.num_events);
  }
  return times;
}

Profile profile_by(const Rates& rates, const Trace& trace) {
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  profile.device = rates.sheet.name;
  profile.source = ProfileSource::kRoofline;
  for (const TracedOp& op : trace.ops) {
    const bool runs = !is_replay_only(op.name);
    profile.forward.push_back(runs ? time_of(rates, trace, op) : Profile::Duration{});
  }
  profile.backward = backward_times(rates, trace, profile.forward);
  for (const TracedCollective& sum : trace.gradient_sums) {
    profile.gradient_sums += time_on_link(rates, trace, sum).value_or(Profile::Duration{});
  }
  repeat_micro_batch(profile, micro_batches(trace));
  profile.optimizer = optimizer_time(rates, trace) + profile.gradient_sums;
  return profile;
}

}  // namespace

const DeviceSheet* sheet_of(const Profile& profile) {
  const DeviceSheet* sheet = find_device_sheet(profile.device);
  return sheet != nullptr ? sheet : sheet_of_card(profile.card);
}

Bytes value_bytes(const Trace& trace, ValueId id) {
  const TracedValue& value = trace.values[id];
  std::int64_t bytes = bytes_in_element(value.dtype);
  for (const std::int64_t size : value.shape) bytes *= size;
  return std::min(Bytes{bytes}, trace.storages[value.storage].bytes);
}

Bytes moved_bytes(const Trace& trace, const TracedOp& op) {
  if (op.is_view) return {};
  Bytes results;
  for (const ValueId output : op.outputs) results += value_bytes(trace, output);
  Bytes moved = results;
  bool is_table = op.op_class == OpClass::kEmbedding;
  for (const TracedUse& input : op.inputs) {
    const Bytes bytes = value_bytes(trace, input.value);
    moved += is_table && op.writes.empty() ? std::min(bytes, results) : bytes;
    is_table = false;
    const StorageId storage = trace.values[input.value].storage;
    if (std::count(op.writes.begin(), op.writes.end(), storage) > 0) moved += bytes;
  }
  return moved;
}

// The optimizer reads the gradient, the parameter and both moments, and writes the parameter and
// both moments. A parameter that is not float32 has a float32 master copy. The master copy is then
// read instead of the parameter, and both are written.
Bytes optimizer_moved_bytes(const Trace& trace) {
  constexpr std::int64_t kFloat32 = 4;
  Bytes moved;
  for (const TracedParameters& kind : trace.parameters) {
    const std::int64_t own = bytes_in_element(kind.dtype);
    const std::int64_t master = kind.dtype == "float32" ? 0 : kFloat32;
    const std::int64_t gradient = has_float32_gradients(trace) ? kFloat32 : own;
    const std::int64_t read = gradient + (master > 0 ? master : own) + 2 * kFloat32;
    const std::int64_t written = own + master + 2 * kFloat32;
    moved += Bytes{kind.count * kind.elements * (read + written)};
  }
  return moved;
}

Profile roofline_profile(const Trace& trace, const DeviceSheet& sheet,
                         const MeasuredRates& measured) {
  const auto& [links, ceilings] = measured;
  if (links) {
    if (const auto problem = links_problem(links->links, trace)) {
      throw std::invalid_argument(*problem);
    }
  }
  Profile profile = profile_by(
      {sheet, links ? &links->links : nullptr, ceilings ? &ceilings->ceilings : nullptr}, trace);
  if (links) profile.links = links->name;
  if (ceilings) profile.ceilings = ceilings->name;
  return profile;
}

RooflineError roofline_error(const Profile& roofline, const Profile& measured) {
  std::vector<double> ratios;
  for (const OpId op : roofline.forward.ids()) {
    if (!measured.forward.contains(op)) break;
    if (roofline.forward[op].count() == 0) continue;
    ratios.push_back(static_cast<double>(measured.forward[op].count()) /
                     static_cast<double>(roofline.forward[op].count()));
  }
  RooflineError error;
  error.step_time_ratio =
      static_cast<double>(measured.step_time().count()) /
      static_cast<double>(std::max<std::int64_t>(1, roofline.step_time().count()));
  if (ratios.empty()) return error;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  error.median_op_ratio = *middle;
  return error;
}

}  // namespace rematch
