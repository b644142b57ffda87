// How --help looks: 100 columns, a flag's default in words behind its description.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace rematch {

class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat();

  // "N", "TEXT ..."; a required argument is in the usage line.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace rematch
