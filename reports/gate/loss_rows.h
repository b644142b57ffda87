// The rows of a loss file, still as text: CSV or JSON lines. What they mean is loss_curve.h's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/gate/loss_curve.h"

namespace rematch {

// The text of a file at a place; empty if there is none.
struct LossCell {
  std::string text;
  int column = 1;  // in bytes from 1
};

struct LossRow {
  int line = 1;
  LossCell step;
  LossCell loss;
};

// "mine.csv:14:6: ", for the start of a message.
std::string at_place(const std::string& file, int line, int column);

// Both throw FormatError.
std::vector<LossRow> csv_loss_rows(std::string_view text, const std::string& file,
                                   const LossColumns& columns);
std::vector<LossRow> json_loss_rows(std::string_view text, const std::string& file,
                                    const LossColumns& columns);

}  // namespace rematch
