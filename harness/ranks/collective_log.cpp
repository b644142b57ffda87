#include "harness/ranks/collective_log.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "harness/engine/record/op_facts.h"
#include "harness/measure/step_place.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

// Maximum number of lines that are kept for a step. Further lines are compared only by their hash.
// A step of a model with a hundred layers has a few thousand lines.
constexpr std::size_t kMaxLines = 20000;
constexpr std::uint64_t kHashStart = 14695981039346656037U;  // FNV-1a
constexpr std::uint64_t kHashFactor = 1099511628211U;

// Returns the tensors of an argument or a result. Empty for any other value.
std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isTensorList()) tensors = value.toTensorVector();
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  return tensors;
}

void describe(const at::Tensor& tensor, bool any_rows, std::ostringstream& text) {
  text << ' ' << tensor.scalar_type() << " [";
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text << (dim == 0 ? "" : ", ");
    if (dim == 0 && any_rows) {
      text << '*';
    } else {
      text << tensor.size(dim);
    }
  }
  text << ']';
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the line at `index`, or "no more collectives" if there are fewer lines.
std::string line_or_end(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? lines[index] : "no more collectives";
}

std::string difference_of(const std::string& first, const std::string& second, int second_rank) {
  const std::vector<std::string> firsts = lines_of(first);
  const std::vector<std::string> seconds = lines_of(second);
  const std::size_t common = std::min(firsts.size(), seconds.size());
  std::size_t index = 0;
  while (index < common && firsts[index] == seconds[index]) ++index;
  return "ranks 0 and " + std::to_string(second_rank) + " differ in collective " +
         std::to_string(index + 1) + " of the step, so their values are wrong: rank 0 has " +
         line_or_end(firsts, index) + "; rank " + std::to_string(second_rank) + " has " +
         line_or_end(seconds, index);
}

}  // namespace

void CollectiveLog::begin_step() {
  const std::lock_guard lock(mutex_);
  makings_.clear();
  lines_.clear();
  num_collectives_ = 0;
  num_ops_ = 0;
  hash_ = kHashStart;
}

void CollectiveLog::compare(Ranks& ranks) {
  const std::vector<std::string> hashes = ranks.values_of_all("collectives, hashed", hash());
  const auto other =
      std::ranges::find_if(hashes, [&](const std::string& one) { return one != hashes.front(); });
  if (other == hashes.end()) return;
  std::string text;
  for (const std::string& line : lines_) text.append(line).append("\n");
  const std::vector<std::string> texts = ranks.values_of_all("collectives, listed", text);
  const auto rank = static_cast<std::size_t>(other - hashes.begin());
  throw RanksError(difference_of(texts.front(), texts[rank], static_cast<int>(rank)));
}

void CollectiveLog::about_to_run(const c10::OperatorHandle& op, Phase phase,
                                 const torch::jit::Stack& stack) {
  if (collective_kind(op.operator_name().name)) list(op, PhaseGuard::effective(phase), stack);
}

void CollectiveLog::executed(const c10::OperatorHandle& op, Phase phase,
                             const torch::jit::Stack& stack) {
  note_results(op, stack);
  const std::optional<CollectiveKind> kind = collective_kind(op.operator_name().name);
  if (!kind) return;
  const std::lock_guard lock(mutex_);
  const Started& started = started_[std::this_thread::get_id()];
  const auto slot = static_cast<std::size_t>(PhaseGuard::effective(phase));
  const std::string name(to_string(*kind));
  for (Totals* totals : {&totals_, &totals_of_groups_[started.group]}) {
    ++totals->executed[slot][name];
    totals->bytes[slot][name] +=
        std::max(started.input_bytes, bytes_of_tensors(stack.back())).count;
  }
}

void CollectiveLog::region_entered(const std::string& region, Phase /*phase*/) {
  const std::lock_guard lock(mutex_);
  regions_[std::this_thread::get_id()].push_back(region);
}

void CollectiveLog::region_left() noexcept {
  const std::lock_guard lock(mutex_);
  std::vector<std::string>& regions = regions_[std::this_thread::get_id()];
  if (!regions.empty()) regions.pop_back();
}

void CollectiveLog::list(const c10::OperatorHandle& op, Phase phase,
                         const torch::jit::Stack& stack) {
  const std::size_t num_arguments = op.schema().arguments().size();
  const torch::jit::Stack arguments(stack.end() - static_cast<std::ptrdiff_t>(num_arguments),
                                    stack.end());
  const c10::IValue& input = arguments.front();
  const CollectiveKind kind = *collective_kind(op.operator_name().name);
  const std::string group = group_of_collective(arguments);
  const std::lock_guard lock(mutex_);
  const std::vector<std::string>& regions = regions_[std::this_thread::get_id()];
  std::ostringstream line;
  line << to_string(phase) << ": " << to_string(kind) << " in '" << group << "' of";
  for (const at::Tensor& tensor : tensors_of(input)) {
    describe(tensor, kind == CollectiveKind::kAllToAll, line);
  }
  if (!regions.empty()) line << " in region " << regions.back();
  line << origin_of(input);
  const std::string text = line.str();
  for (const char letter : text + "\n") {
    hash_ = (hash_ ^ static_cast<unsigned char>(letter)) * kHashFactor;
  }
  if (lines_.size() < kMaxLines) lines_.push_back(text);
  started_[std::this_thread::get_id()] = {group, bytes_of_tensors(input)};
  ++num_collectives_;
  num_ops_ = 0;
}

// Returns "" if the input was made outside the step, or is a list of tensors.
std::string CollectiveLog::origin_of(const c10::IValue& input) const {
  if (!input.isTensor() || !input.toTensor().has_storage()) return {};
  const auto found = makings_.find(input.toTensor().storage().unsafeGetStorageImpl());
  if (found == makings_.end()) return {};
  const Making& making = found->second;
  const std::int64_t collectives = num_collectives_ - making.num_collectives;
  const bool is_far = collectives > 0;
  return " (made by " + *making.op + (is_far ? ", collectives since: " : ", ops since: ") +
         std::to_string(is_far ? collectives : num_ops_ - making.num_ops - 1) + ')';
}

void CollectiveLog::note_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::size_t num_results = op.schema().returns().size();
  const std::lock_guard lock(mutex_);
  for (std::size_t index = stack.size() - std::min(num_results, stack.size()); index < stack.size();
       ++index) {
    for (const at::Tensor& tensor : tensors_of(stack[index])) {
      if (!tensor.has_storage()) continue;
      const c10::Storage& storage = tensor.storage();
      makings_.insert_or_assign(storage.unsafeGetStorageImpl(),
                                Making{storage.getWeakStorageImpl(), &op.operator_name().name,
                                       num_collectives_, num_ops_});
    }
  }
  ++num_ops_;
}

std::string CollectiveLog::hash() const { return std::to_string(hash_); }

}  // namespace rematch
