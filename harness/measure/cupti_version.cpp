#include "harness/measure/cupti_version.h"

#include <dlfcn.h>

#include <cstdint>

namespace rematch {

std::optional<std::string> cupti_version(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  const auto get_version =
      reinterpret_cast<int (*)(std::uint32_t*)>(dlsym(handle, "cuptiGetVersion"));
  std::uint32_t version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return std::nullopt;
  // 130001 is 13.0, update 1.
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace rematch
