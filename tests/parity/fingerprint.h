// Facts that determine the bits of a kernel's result on a CPU: PyTorch's version, the instructions
// that PyTorch and its math libraries choose, and the number of threads. Python writes these facts
// into the golden files, and C++ compares them.
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace rematch {

// Returns the vendor and the instruction sets by which oneDNN and MKL choose their kernels.
inline std::string parity_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string vendor = "unknown";
  std::string sets;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, word;
    words >> key;
    if (key == "vendor_id") words >> word >> vendor;
    if (key != "flags") continue;
    while (words >> word) {
      if (word.starts_with("avx") || word.starts_with("amx") || word == "fma") sets += " " + word;
    }
    break;
  }
  return vendor + sets;
}

// Returns the settings that a user may have forced on the math libraries.
inline std::string parity_math_mode() {
  std::string mode;
  for (const char* name : {"MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE",
                           "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (const char* value = std::getenv(name)) mode += std::string(name) + "=" + value + " ";
  }
  mode += at::globalContext().deterministicAlgorithms() ? "deterministic" : "default";
  return mode;
}

inline std::map<std::string, std::string> parity_fingerprint() {
  return {{"torch", TORCH_VERSION},
          {"cpu_capability", at::get_cpu_capability()},
          {"processor", parity_processor()},
          {"math_library", at::get_mkl_version()},
          {"math_library_mode", parity_math_mode()},
          {"onednn", at::get_mkldnn_version()},
          {"threads", std::to_string(at::get_num_threads())}};
}

}  // namespace rematch
