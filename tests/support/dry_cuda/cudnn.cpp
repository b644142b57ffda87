// Stand-in for libcudnn: its version, which LibTorch asks for, and nothing that computes.
#include <cstddef>

extern "C" {

std::size_t cudnnGetVersion() { return 91900; }
std::size_t cudnnGetCudartVersion() { return 13000; }

}  // extern "C"
