#include "harness/profile/attribution.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace rematch {
namespace {

constexpr OpClass kCrossChecked[] = {OpClass::kMatmul, OpClass::kAttentionForward,
                                     OpClass::kAttentionBackward};

// Returns the kernel class that an op of class `op_class` must launch. Absent if such ops are not
// checked.
std::optional<KernelClass> own_kernel_class(OpClass op_class, AttentionKernels attention) {
  const bool is_composed = attention == AttentionKernels::kComposed;
  switch (op_class) {
    case OpClass::kMatmul:
      return KernelClass::kMatmul;
    case OpClass::kAttentionForward:
      return is_composed ? KernelClass::kMatmul : KernelClass::kAttentionForward;
    case OpClass::kAttentionBackward:
      return is_composed ? KernelClass::kMatmul : KernelClass::kAttentionBackward;
    default:
      return std::nullopt;
  }
}

class Attribution {
 public:
  Attribution(const Activity& activity, const std::vector<OpCall>& calls,
              AttentionKernels attention)
      : activity_(activity), calls_(calls) {
    use_.attention = attention;
    use_.by_call.resize(calls.size());
    use_.kernels_by_call.resize(calls.size(), 0);
    for (const LaunchLink& link : activity.links) links_[link.correlation] = link.op_call;
  }

  KernelUse run() {
    use_.dropped = activity_.dropped;
    use_.unfinished = activity_.unfinished;
    for (const KernelActivity& kernel : activity_.kernels) add_kernel(kernel);
    for (const TransferActivity& transfer : activity_.transfers) add_transfer(transfer);
    count_ops_with_kernels();
    count_lost();
    use_.invalid = reason_for_invalid();
    if (!use_.invalid && !launches_explain_kernels()) {
      use_.invalid = difference_of_steps();
      if (use_.invalid)
        *use_.invalid +=
            ", and the numbers of launches do not explain the difference; measure again";
    }
    if (!use_.invalid) use_.note = note();
    return std::move(use_);
  }

 private:
  struct Name {
    std::string text;
    std::string shortened;
    KernelClass kernel_class = KernelClass::kUnknown;
  };

  static void add(KernelTotals& totals, std::chrono::nanoseconds time) {
    ++totals.count;
    totals.time += time;
  }

  // Demangles and classifies each name once, because names repeat thousands of times.
  const Name& name_of(const std::string& symbol) {
    Name& name = names_[symbol];
    if (name.text.empty()) {
      name.text = demangled(symbol);
      name.shortened = short_name(name.text);
      name.kernel_class = kernel_class_of(name.text);
    }
    return name;
  }

  bool is_of(std::uint64_t stand_in, std::uint32_t correlation) const {
    const auto found = links_.find(correlation);
    return found != links_.end() && found->second == stand_in;
  }

  const OpCall* call_of(std::uint32_t correlation, std::size_t& index) const {
    const auto found = links_.find(correlation);
    if (found == links_.end() || found->second == 0 || found->second > calls_.size()) {
      return nullptr;
    }
    index = static_cast<std::size_t>(found->second - 1);
    return &calls_[index];
  }

  bool stamps_are_good(std::chrono::nanoseconds start, std::chrono::nanoseconds end) {
    const bool good = start.count() > 0 && end >= start;
    if (!good) ++use_.badly_stamped;
    return good;
  }

  void add_kernel(const KernelActivity& kernel) {
    with_kernel_.insert(kernel.correlation);
    if (!stamps_are_good(kernel.start, kernel.end)) return;
    if (is_of(kBatchOfStep, kernel.correlation)) return;
    std::size_t index = 0;
    const OpCall* call = call_of(kernel.correlation, index);
    if (call == nullptr) {
      ++use_.unattributed;
      return;
    }
    const Name& name = name_of(kernel.symbol);
    const std::chrono::nanoseconds time = kernel.end - kernel.start;
    const auto phase = static_cast<std::size_t>(call->phase);
    add(use_.by_class[phase][name.kernel_class], time);
    add(use_.by_name[phase][name.shortened], time);
    add(use_.by_op_class[phase][call->op_class], time);
    use_.by_call[index] += time;
    ++use_.kernels_by_call[index];
    ++kernels_of_step_[call->step];
    if (name.kernel_class == own_kernel_class(call->op_class, use_.attention)) {
      launched_own_.insert(index);
    }
    if (name.kernel_class == KernelClass::kUnknown) use_.unknown[name.text] += time;
  }

  void add_transfer(const TransferActivity& transfer) {
    if (!stamps_are_good(transfer.start, transfer.end)) return;
    const std::chrono::nanoseconds time = transfer.end - transfer.start;
    if (is_of(kBatchOfStep, transfer.correlation)) return;
    std::size_t index = 0;
    if (const OpCall* call = call_of(transfer.correlation, index)) {
      add(use_.by_class[static_cast<std::size_t>(call->phase)][KernelClass::kMemory], time);
      use_.by_call[index] += time;
      return;
    }
    TransferTotals& totals =
        is_of(kOffloadOfPlan, transfer.correlation) ? use_.offload : use_.unattributed_transfers;
    ++totals.count;
    totals.bytes += transfer.bytes;
    totals.time += time;
  }

  // Counts the launches by op calls, and how many of these launches have no kernel record. If a
  // runtime call launches through a driver call, CUPTI may record both calls, but records the
  // kernel for only one of them. Such a pair counts as one launch.
  void count_lost() {
    std::vector<LaunchCall> launches = activity_.launches;
    std::ranges::sort(launches, {}, [](const LaunchCall& launch) {
      return std::tuple(launch.thread, launch.start, -launch.end);
    });
    for (std::size_t index = 0; index < launches.size(); ++index) {
      std::size_t call_index = 0;
      const OpCall* call = call_of(launches[index].correlation, call_index);
      if (call == nullptr) continue;
      const bool has_kernel = with_kernel_.contains(launches[index].correlation);
      if (!has_kernel && is_one_with_neighbour(launches, index)) continue;
      ++launches_of_step_[call->step];
      if (!has_kernel) ++use_.lost;
    }
  }

  // Returns whether a call and the call before or after it are one launch: one of them contains the
  // other, and the adjacent call has a kernel. `launches` must be sorted.
  bool is_one_with_neighbour(const std::vector<LaunchCall>& launches, std::size_t index) const {
    const auto contains = [](const LaunchCall& outer, const LaunchCall& inner) {
      return outer.thread == inner.thread && outer.start <= inner.start && inner.end <= outer.end;
    };
    const auto has_kernel = [this](const LaunchCall& launch) {
      return with_kernel_.contains(launch.correlation);
    };
    const LaunchCall& launch = launches[index];
    if (index > 0) {
      const LaunchCall& before = launches[index - 1];
      if (contains(before, launch) && has_kernel(before)) return true;
    }
    if (index + 1 == launches.size()) return false;
    const LaunchCall& after = launches[index + 1];
    return contains(launch, after) && has_kernel(after);
  }

  void count_ops_with_kernels() {
    for (const std::size_t index : launched_own_) {
      const OpCall& call = calls_[index];
      ++use_.ops_with_kernels[static_cast<std::size_t>(call.phase)][call.op_class];
    }
  }

  std::optional<std::string> reason_for_invalid() const {
    if (use_.dropped > 0) {
      return std::to_string(use_.dropped) + " activity records were dropped; count fewer steps";
    }
    if (use_.unfinished > 0) {
      return std::to_string(use_.unfinished) +
             " kernels or copies had not ended when their records were read: does another thread "
             "use the device?";
    }
    if (use_.lost > 0) {
      return "ops launched kernels without a record: " + std::to_string(use_.lost) +
             "; measure again";
    }
    if (use_.badly_stamped > 0) {
      return std::to_string(use_.badly_stamped) + " activity records have no usable time stamps";
    }
    if (use_.unattributed > 0) {
      return std::to_string(use_.unattributed) +
             " kernels were not launched by an op of the step: does other code of this process "
             "use the GPU?";
    }
    return std::nullopt;
  }

  // If each step has as many launches as kernels, no record is lost. Any difference between steps
  // then comes from the program.
  bool launches_explain_kernels() const { return launches_of_step_ == kernels_of_step_; }

  std::optional<std::string> difference_of_steps() const {
    for (const auto& [step, count] : kernels_of_step_) {
      if (count == kernels_of_step_.begin()->second) continue;
      return "step " + std::to_string(kernels_of_step_.begin()->first) + " ran " +
             std::to_string(kernels_of_step_.begin()->second) + " kernels, step " +
             std::to_string(step) + " ran " + std::to_string(count);
    }
    return std::nullopt;
  }

  std::optional<std::string> note() const {
    if (const std::optional<std::string> difference = difference_of_steps()) {
      return *difference + ": the launches of a step depend on its data";
    }
    const TransferTotals& transfers = use_.unattributed_transfers;
    if (transfers.count == 0) return std::nullopt;
    return std::to_string(transfers.count) + " copies or memsets of " +
           std::to_string(transfers.bytes.count) + " bytes were not started by an op";
  }

  const Activity& activity_;
  const std::vector<OpCall>& calls_;
  std::unordered_map<std::uint32_t, std::uint64_t> links_;
  std::unordered_map<std::string, Name> names_;
  std::set<std::size_t> launched_own_;
  std::unordered_set<std::uint32_t> with_kernel_;  // correlation ids of calls that have a kernel
  std::map<int, std::int64_t> kernels_of_step_;
  std::map<int, std::int64_t> launches_of_step_;
  KernelUse use_;
};

}  // namespace

std::chrono::nanoseconds KernelUse::total_time() const {
  std::chrono::nanoseconds total{};
  for (const auto& phase : by_class) {
    for (const auto& [kernel_class, totals] : phase) total += totals.time;
  }
  return total;
}

std::chrono::nanoseconds KernelUse::unknown_time() const {
  std::chrono::nanoseconds total{};
  for (const auto& [name, time] : unknown) total += time;
  return total;
}

KernelUse attribute(const Activity& activity, const std::vector<OpCall>& calls,
                    AttentionKernels attention) {
  return Attribution(activity, calls, attention).run();
}

std::optional<std::string> disagreement(
    const KernelUse& use, const std::array<std::map<OpClass, std::int64_t>, kNumPhases>& executed) {
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const OpClass op_class : kCrossChecked) {
      const auto count_in = [op_class](const std::map<OpClass, std::int64_t>& counts) {
        const auto found = counts.find(op_class);
        return found == counts.end() ? std::int64_t{0} : found->second;
      };
      const std::int64_t ops = count_in(executed[phase]);
      const std::int64_t with_kernels = count_in(use.ops_with_kernels[phase]);
      if (ops == with_kernels) continue;
      return std::string(to_string(static_cast<Phase>(phase))) + " executed " +
             std::to_string(ops) + " " + std::string(to_string(op_class)) + " ops, but " +
             std::to_string(with_kernels) + " of them launched a kernel of class " +
             std::string(to_string(own_kernel_class(op_class, use.attention).value()));
    }
  }
  return std::nullopt;
}

namespace {

// Absent if there were no transfers.
std::optional<TransferRecord> transfer_record(const TransferTotals& totals) {
  if (totals.count == 0) return std::nullopt;
  return TransferRecord{totals.count, totals.bytes, totals.time};
}

}  // namespace

KernelRecord kernel_record(const KernelUse& use, const CountsRecord& executed) {
  KernelRecord record;
  record.counted_steps = executed.counted_steps;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [kernel_class, totals] : use.by_class[phase]) {
      const std::string name(to_string(kernel_class));
      record.count[phase][name] = totals.count;
      record.time[phase][name] = totals.time;
    }
    for (const auto& [name, totals] : use.by_name[phase]) {
      record.launches[phase][name] = totals.count;
    }
  }
  record.dropped_records = use.dropped;
  record.lost_records = use.lost + use.unfinished;
  record.offload_copies = transfer_record(use.offload);
  record.unattributed_transfers = transfer_record(use.unattributed_transfers);
  record.unattributed_kernels = use.unattributed;
  record.badly_stamped_records = use.badly_stamped;
  for (const auto& [name, time] : use.unknown) record.unknown_names.push_back(name);
  record.unknown_times = use.unknown;
  const auto all = static_cast<double>(use.total_time().count());
  if (all > 0) record.unknown_time_ratio = static_cast<double>(use.unknown_time().count()) / all;
  record.note = use.note.value_or("");
  if (use.invalid) {
    record.invalid = *use.invalid;
  } else if (const auto difference = disagreement(use, executed.by_class)) {
    record.invalid = *difference;
  }
  return record;
}

std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> op_class_times(
    const KernelUse& use, int counted_steps) {
  std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> times;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [op_class, totals] : use.by_op_class[phase]) {
      times[phase][op_class] = totals.time / counted_steps;
    }
  }
  return times;
}

}  // namespace rematch
