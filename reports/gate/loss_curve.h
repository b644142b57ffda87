// The loss of one training run by step, read from a text that any trainer can write: CSV with a
// header, or JSON lines. Strict about everything that could hide a difference. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

// The columns' names in the file; matched without case if no name matches exactly.
struct LossColumns {
  std::string step = "step";
  std::string loss = "loss";
};

struct LossPoint {
  std::int64_t step = 0;
  std::optional<double> loss;  // absent: not finite
  int line = 0;                // from 1
  int column = 0;              // of the loss, in bytes from 1
};

// A row with a step and without a loss, as loggers write them for a validation; pandas leaves the
// cell empty for a loss that is not a number as well.
struct EmptyLoss {
  std::int64_t step = 0;
  int line = 0;
};

struct RunLosses {
  std::string file;
  std::string sha256;             // of its text
  std::vector<LossPoint> points;  // by step; no step twice, one point at least
  std::vector<EmptyLoss> empty;   // in the file's order
};

inline constexpr std::size_t kMostLosses = 1'000'000;

// `file` stands before every message. Throws FormatError, with line and column, for a header
// without the columns, a cell that is no number, a row of another width, a step that appears twice,
// and a text without a loss.
RunLosses parse_loss_curve(std::string_view text, const std::string& file,
                           const LossColumns& columns);

// "mine.csv:14:6"
std::string place_of(const RunLosses& curve, const LossPoint& point);

}  // namespace rematch
