// The model families, in the order in which users see them, as (enumerator, name in files). To add
// a family, add a line here, preset/NAME.cpp with NAME_family(), and families/NAME.cpp with
// make_NAME(). CMake also reads the names from this file.
#pragma once

#define REMATCH_MODEL_FAMILIES(FAMILY) \
  FAMILY(kLlama, llama)                \
  FAMILY(kMoe, moe)                    \
  FAMILY(kDeepseek, deepseek)          \
  FAMILY(kDit, dit)                    \
  FAMILY(kLtx, ltx)
