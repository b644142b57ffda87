// Stand-in for libcudnn. The stand-in only reports its version, which LibTorch queries.
#include <cstddef>

extern "C" {

std::size_t cudnnGetVersion() { return 91900; }
std::size_t cudnnGetCudartVersion() { return 13000; }

}  // extern "C"
