#include "reports/gate/loss_curve.h"

#include <algorithm>
#include <cmath>

#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/base/json_fwd.h"
#include "policies/base/text.h"
#include "reports/gate/loss_rows.h"

namespace rematch {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Converts one row at a time to a point, or throws FormatError.
class Reader {
 public:
  Reader(const std::string& file, const LossColumns& columns) : file_(file), columns_(columns) {}

  void add(const LossRow& row) {
    if (row.loss.text.empty()) {
      if (!row.step.text.empty()) curve_.empty.push_back({step_of(row), row.line});
      return;
    }
    if (row.step.text.empty()) {
      throw FormatError(at_place(file_, row.line, row.loss.column) + "a loss without a " +
                        in_quotes(columns_.step));
    }
    const double loss = number_of(row.loss, row.line, columns_.loss);
    LossPoint point{step_of(row), std::nullopt, row.line, row.loss.column};
    if (std::isfinite(loss)) point.loss = loss;
    curve_.points.push_back(point);
  }

  RunLosses take() {
    curve_.file = file_;
    if (curve_.points.empty()) {
      throw FormatError(file_ + ": no row has a " + in_quotes(columns_.loss));
    }
    if (curve_.points.size() > kMaxLosses) {
      throw FormatError(file_ + ": has more than " + std::to_string(kMaxLosses) +
                        " losses, which is the maximum; keep only every tenth step");
    }
    std::stable_sort(
        curve_.points.begin(), curve_.points.end(),
        [](const LossPoint& left, const LossPoint& right) { return left.step < right.step; });
    const auto twice = std::adjacent_find(
        curve_.points.begin(), curve_.points.end(),
        [](const LossPoint& left, const LossPoint& right) { return left.step == right.step; });
    if (twice != curve_.points.end()) {
      const LossPoint& second = *std::next(twice);
      throw FormatError(at_place(file_, second.line, second.column) + "step " +
                        std::to_string(second.step) + " appears twice, first in line " +
                        std::to_string(twice->line) + "; keep one of them");
    }
    return std::move(curve_);
  }

 private:
  double number_of(const LossCell& cell, int line, const std::string& name) const {
    std::string_view text = trimmed(cell.text);
    if (text.starts_with('+')) text.remove_prefix(1);
    if (const auto number = parse_number<double>(text)) return *number;
    throw FormatError(at_place(file_, line, cell.column) + in_quotes(cell.text) +
                      " is not a valid " + name + "; a number is expected");
  }

  std::int64_t step_of(const LossRow& row) const {
    const double step = number_of(row.step, row.line, columns_.step);
    if (step >= 0 && step <= double{kLargestInteger} && std::floor(step) == step) {
      return static_cast<std::int64_t>(step);
    }
    throw FormatError(at_place(file_, row.line, row.step.column) + in_quotes(row.step.text) +
                      " is not a step; a whole number from 0 is expected");
  }

  const std::string& file_;
  const LossColumns& columns_;
  RunLosses curve_;
};

}  // namespace

RunLosses parse_loss_curve(std::string_view text, const std::string& file,
                           const LossColumns& columns) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.find('\0') != std::string_view::npos) {
    throw FormatError(
        file + ": is not text; export TensorBoard's events as CSV and add --loss-column Value");
  }
  const std::string_view start = trimmed(text.substr(0, std::min<std::size_t>(text.size(), 4096)));
  const bool is_json = start.starts_with('{') || start.starts_with('[');
  Reader reader(file, columns);
  for (const LossRow& row :
       is_json ? json_loss_rows(text, file, columns) : csv_loss_rows(text, file, columns)) {
    reader.add(row);
  }
  RunLosses curve = reader.take();
  curve.sha256 = sha256_hex(text);
  return curve;
}

std::string place_of(const RunLosses& curve, const LossPoint& point) {
  return curve.file + ":" + std::to_string(point.line) + ":" + std::to_string(point.column);
}

}  // namespace rematch
