#include "policies/trace/trace_op.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

namespace rematch {
namespace {

using Shape = std::vector<std::int64_t>;

// Returns the shape of the op's input at `index`, or an empty shape if the op has no such input.
const Shape& shape_of(const Trace& trace, const TracedOp& op, std::size_t index) {
  static const Shape kNoShape;
  if (index >= op.inputs.size()) return kNoShape;
  return trace.values[op.inputs[index].value].shape;
}

// `right_size` is the size of the right operand's dimension that is not summed over.
std::int64_t product(const Shape& left, std::int64_t right_size) {
  std::int64_t flops = 2 * right_size;
  for (const std::int64_t size : left) flops *= size;
  return flops;
}

std::int64_t product(const Trace& trace, const TracedOp& op, std::size_t left) {
  const Shape& right = shape_of(trace, op, left + 1);
  return right.empty() ? 0 : product(shape_of(trace, op, left), right.back());
}

}  // namespace

std::int64_t flops_of(const Trace& trace, const TracedOp& op) {
  const std::string_view name = std::string_view(op.name).substr(0, op.name.find('.'));
  // A grouped product multiplies each row by the matrix of one group.
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::_grouped_mm") {
    return product(trace, op, 0);
  }
  if (name == "aten::addmm" || name == "aten::baddbmm") return product(trace, op, 1);
  if (name == "rematch::linear_cross_entropy" ||
      name == "rematch::linear_cross_entropy_with_logits") {
    const Shape& weight = shape_of(trace, op, 1);
    return weight.empty() ? 0 : product(shape_of(trace, op, 0), weight.front());
  }
  if (op.op_class != OpClass::kAttentionForward) return 0;
  const Shape& query = shape_of(trace, op, 0);
  const Shape& key = shape_of(trace, op, 1);
  if (query.size() != 4 || key.size() != 4) return 0;
  return 4 * query[0] * query[1] * query[2] * key[2] * query[3];
}

std::size_t num_ops(const std::vector<BackwardEvent>& events) {
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(),
      [](const BackwardEvent& event) { return event.kind == BackwardEvent::Kind::kOp; }));
}

Bytes fresh_bytes(const Trace& trace, const TracedOp& op) {
  if (op.is_view) return {};
  std::set<StorageId> storages;
  for (ValueId output : op.outputs) storages.insert(trace.values[output].storage);
  for (const TracedUse& input : op.inputs) storages.erase(trace.values[input.value].storage);
  Bytes bytes;
  for (StorageId storage : storages) bytes += trace.storages[storage].bytes;
  return bytes;
}

namespace {

struct OtherName {
  std::string_view other;
  std::string_view name;
};
constexpr OtherName kOtherNames[] = {{"aten::_reshape_alias", "aten::view"}};

}  // namespace

std::string_view one_name(std::string_view op) {
  const auto* const found =
      std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                   [op](const OtherName& entry) { return entry.other == op; });
  return found == std::end(kOtherNames) ? op : found->name;
}

bool is_same_op(std::string_view a, std::string_view b) {
  return a == b || one_name(a) == one_name(b);
}

std::map<std::string, std::int64_t> with_one_name(
    const std::map<std::string, std::int64_t>& counts) {
  std::map<std::string, std::int64_t> merged;
  for (const auto& [op, count] : counts) merged[std::string(one_name(op))] += count;
  return merged;
}

}  // namespace rematch
