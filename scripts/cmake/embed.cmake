# cmake -DOUTPUT=FILE -DHEADER=FILE -DFUNCTION=NAME "-DFILES=FILE;FILE" -P embed.cmake
# Writes a source that defines FUNCTION, which HEADER declares. The function returns a pair for each file, in order: the
# file's name up to its first dot, and its text. The text is a raw string, whose delimiter no file may contain.
set(entries "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(FIND "${text}" ")embedded\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${file} holds )embedded\", the end of a raw string")
  endif()
  string(APPEND entries "      {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace rematch {

const std::vector<std::pair<std::string_view, std::string_view>>& ${FUNCTION}() {
  static const std::vector<std::pair<std::string_view, std::string_view>> kFiles = {
${entries}  };
  return kFiles;
}

}  // namespace rematch
")
