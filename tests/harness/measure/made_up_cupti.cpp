// A stand-in for the CUPTI library that implements only its version. Tests load it like the real
// library.
#include <cstdint>

extern "C" int cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return 0;
}
