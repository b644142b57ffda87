// The place of torch_file()'s file in a training system: what no mode of its configuration does.
#pragma once

#include <string>
#include <string_view>

namespace rematch {

struct CallPlace {
  std::string_view target;  // "torch", "transformers", ...
  std::string_view where;   // the call goes: sentences that end in a colon
  std::string_view lines;   // of the call; {M} is the file's module
};

// Null for a system that runs its own modes alone, megatron, and for what is no target.
const CallPlace* find_call_place(std::string_view target);

// The place and the call, for a docstring: sentences, an empty line, the lines indented.
std::string call_text(const CallPlace& place, const std::string& module_name);

}  // namespace rematch
