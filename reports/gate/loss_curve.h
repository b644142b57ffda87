// The loss of one training run by step. The loss is read from text that any trainer can write: CSV
// with a header, or JSON lines. The reader rejects everything that could hide a difference. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

// The names of the columns in the file. If no name matches exactly, letter case is ignored.
struct LossColumns {
  std::string step = "step";
  std::string loss = "loss";
};

struct LossPoint {
  std::int64_t step = 0;
  std::optional<double> loss;  // absent if the loss is not finite
  int line = 0;                // line in the file, counted from 1
  int column = 0;              // column where the loss starts, in bytes, counted from 1
};

// A row with a step but no loss. Loggers write such rows for validation steps, and pandas writes an
// empty cell for NaN.
struct EmptyLoss {
  std::int64_t step = 0;
  int line = 0;
};

struct RunLosses {
  std::string file;
  std::string sha256;             // hash of the file's text
  std::vector<LossPoint> points;  // sorted by step; at least one point, and each step once
  std::vector<EmptyLoss> empty;   // in the order of the file
};

inline constexpr std::size_t kMaxLosses = 1'000'000;

// Every message starts with `file`. Throws FormatError if the text is malformed, repeats a step or
// contains no loss.
RunLosses parse_loss_curve(std::string_view text, const std::string& file,
                           const LossColumns& columns);

// Returns text such as "mine.csv:14:6".
std::string place_of(const RunLosses& curve, const LossPoint& point);

}  // namespace rematch
