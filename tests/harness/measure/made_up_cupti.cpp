// A CUPTI that knows its version and nothing else, to be loaded as the library is.
#include <cstdint>

extern "C" int cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return 0;
}
