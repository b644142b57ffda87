#include "policies/base/schema.h"

namespace rematch {

std::string schema_prefix(std::string_view kind) {
  return std::string("rematch.").append(kind).append("/").append(std::to_string(Schema::kMajor)) +
         ".";
}

std::string schema_name(const Schema& schema) {
  return schema_prefix(schema.kind) + std::to_string(schema.minor);
}

}  // namespace rematch
