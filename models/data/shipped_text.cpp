#include "models/data/text.h"

// The assembler copies the file; C++20 has no #embed.
asm(".section .rodata\n"
    ".global rematch_shipped_text\n"
    "rematch_shipped_text:\n"
    ".incbin \"" REMATCH_TEXT_FILE
    "\"\n"
    ".global rematch_shipped_text_end\n"
    "rematch_shipped_text_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char rematch_shipped_text[];
extern const char rematch_shipped_text_end[];
}

namespace rematch {

std::string_view shipped_text() {
  return {rematch_shipped_text,
          static_cast<std::size_t>(rematch_shipped_text_end - rematch_shipped_text)};
}

}  // namespace rematch
