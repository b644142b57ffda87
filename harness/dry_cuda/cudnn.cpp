// Stand-in for libcudnn. Implements only the functions that return versions.
#include <cstddef>

extern "C" {

std::size_t cudnnGetVersion() { return 91900; }
std::size_t cudnnGetCudartVersion() { return 13000; }

}  // extern "C"
