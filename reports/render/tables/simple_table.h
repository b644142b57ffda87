// The plan of a front that a person can type, beside the front's own answer, for a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/front_words.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// "whole_region: torch.utils.checkpoint's, which every PyTorch trainer has".
std::string schedule_words(Schedule schedule);

// The row beside the points of a front, with its distance to it: "simple". The record has one.
table::Row simple_row(const FrontRecord& record);

// Setting, answer and simple plan alone: what search --simple prints.
std::string simple_to_text(const FrontRecord& record, std::size_t width, const FrontFiles& files);

}  // namespace rematch
