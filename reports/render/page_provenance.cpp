#include "reports/render/page_provenance.h"

#include <optional>

#include "reports/render/format.h"
#include "reports/render/markup.h"

namespace rematch {
namespace {

std::string fact(const std::string& name, const std::optional<std::string>& value) {
  if (!value || value->empty()) return "";
  return "<dt>" + escape_markup(name) + "</dt><dd>" + escape_markup(*value) + "</dd>\n";
}

std::optional<std::string> as_text(const std::optional<int>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

std::optional<std::string> as_text(const std::optional<Bytes>& value) {
  return value ? std::optional(format_bytes(*value)) : std::nullopt;
}

}  // namespace

std::string provenance_figure(const Provenance& made, const std::string& name) {
  const Environment& machine = made.environment;
  std::string text = "<figure><h3>" + escape_markup(name) +
                     "</h3>\n<details><summary>Machine and versions</summary>\n<dl>\n";
  text += fact("device", machine.device) + fact("device memory", as_text(machine.device_memory)) +
          fact("CPU", machine.cpu_model) + fact("threads", as_text(machine.threads)) +
          fact("host memory", as_text(machine.host_memory)) +
          fact("LibTorch", machine.libtorch_version) + fact("driver", machine.driver) +
          fact("CUDA", machine.cuda_runtime) + fact("allocator", machine.allocator) +
          fact("mathematics", machine.math_mode) + fact("system", machine.os) +
          fact("execution", made.execution) + fact("rematch", made.tool_version);
  if (made.git_commit) {
    text += fact("commit",
                 *made.git_commit + (made.git_dirty.value_or(false) ? ", with local changes" : ""));
  }
  text += fact("fingerprint", fingerprint(machine).substr(0, 16)) + "</dl></details>\n";
  if (!made.reproduce.empty()) {
    text +=
        "<p class=\"after\">Make it again:</p><pre>" + escape_markup(made.reproduce) + "</pre>\n";
  }
  return text + "</figure>\n";
}

std::string machine_line(const Environment& machine) {
  std::string text = machine.device.value_or("unknown device");
  if (text == "cpu" && machine.cpu_model) text = *machine.cpu_model;
  if (machine.threads) {
    text +=
        ", " + std::to_string(*machine.threads) + (*machine.threads == 1 ? " thread" : " threads");
  }
  if (machine.libtorch_version) text += ", LibTorch " + *machine.libtorch_version;
  return text;
}

}  // namespace rematch
