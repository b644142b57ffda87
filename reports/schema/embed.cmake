# cmake -DOUTPUT=FILE -DSCHEMAS=FILE;FILE -P embed.cmake: writes embedded.h's function.
# Text goes in as raw strings; the delimiter is one that no schema holds.
set(entries "")
foreach(schema IN LISTS SCHEMAS)
  get_filename_component(kind ${schema} NAME)
  string(REPLACE ".schema.json" "" kind ${kind})
  file(READ ${schema} text)
  string(FIND "${text}" ")schema\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${schema} holds )schema\", the end of a raw string")
  endif()
  string(APPEND entries "      {\"${kind}\", R\"schema(${text})schema\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"reports/schema/embedded.h\"

namespace rematch {

const std::vector<std::pair<std::string_view, std::string_view>>& embedded_schemas() {
  static const std::vector<std::pair<std::string_view, std::string_view>> kSchemas = {
${entries}  };
  return kSchemas;
}

}  // namespace rematch
")
