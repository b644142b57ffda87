// What a report's figures were measured with, and the line that measures them again.
#pragma once

#include <string>

#include "reports/record/report.h"

namespace rematch {

// The machine's facts are folded; the command is not.
std::string provenance_figure(const Provenance& made, const std::string& name);

// "AMD EPYC, 2 threads, LibTorch 2.11.0".
std::string machine_line(const Environment& machine);

}  // namespace rematch
