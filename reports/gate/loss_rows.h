// Reads the rows of a loss file, CSV or JSON lines, as text. loss_curve.h interprets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/gate/loss_curve.h"

namespace rematch {

// The text of one cell and its column in the file. An absent cell has empty text.
struct LossCell {
  std::string text;
  int column = 1;  // in bytes, counted from 1
};

struct LossRow {
  int line = 1;
  LossCell step;
  LossCell loss;
};

// Returns the start of a message, such as "mine.csv:14:6: ".
std::string at_place(const std::string& file, int line, int column);

// Both functions throw FormatError if the text is malformed or lacks a column.
std::vector<LossRow> csv_loss_rows(std::string_view text, const std::string& file,
                                   const LossColumns& columns);
std::vector<LossRow> json_loss_rows(std::string_view text, const std::string& file,
                                    const LossColumns& columns);

}  // namespace rematch
