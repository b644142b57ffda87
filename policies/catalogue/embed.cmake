# cmake -DOUTPUT=FILE -DPOLICIES=FILE;FILE -P embed.cmake: writes remat_files.h's function. Text goes in
# as raw strings; the delimiter is one that no policy holds.
set(entries "")
foreach(policy IN LISTS POLICIES)
  get_filename_component(name ${policy} NAME_WE)
  file(READ ${policy} text)
  string(FIND "${text}" ")policy\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${policy} holds )policy\", the end of a raw string")
  endif()
  string(APPEND entries "      {\"${name}\", R\"policy(${text})policy\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"policies/catalogue/remat_files.h\"

namespace rematch {

const std::vector<std::pair<std::string_view, std::string_view>>& remat_files() {
  static const std::vector<std::pair<std::string_view, std::string_view>> kFiles = {
${entries}  };
  return kFiles;
}

}  // namespace rematch
")
