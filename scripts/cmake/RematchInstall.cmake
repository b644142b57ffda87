# Defines `cmake --install`: the binary, the public headers, and a package for find_package(rematch). The package has
# rematch::catalogue and, in a build with LibTorch, rematch::engine and rematch::tracer.
include(CMakePackageConfigHelpers)

# Appends `name` and all targets of the project that it links, directly or not, to `out`.
function(rematch_link_closure out name)
  set(closure ${${out}})
  get_target_property(real rematch::${name} ALIASED_TARGET)
  if(NOT real IN_LIST closure)
    list(APPEND closure ${real})
    get_target_property(linked ${real} INTERFACE_LINK_LIBRARIES)
    foreach(item IN LISTS linked)
      string(REGEX MATCHALL "rematch::[a-z_]+" parts "${item}")  # two in a choice
      foreach(part IN LISTS parts)
        string(REPLACE "rematch::" "" part ${part})
        rematch_link_closure(closure ${part})
      endforeach()
    endforeach()
  endif()
  set(${out} ${closure} PARENT_SCOPE)
endfunction()

set(rematch_packaged "")
rematch_link_closure(rematch_packaged catalogue)
set(rematch_header_folders policies models/scope)
set(rematch_headers "")
if(REMATCH_LIBTORCH)
  rematch_link_closure(rematch_packaged engine)
  rematch_link_closure(rematch_packaged tracer)
  list(APPEND rematch_headers harness/engine/recording.h harness/trace/tracer.h)
endif()

set(rematch_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/rematch)
set(rematch_include_folder ${CMAKE_INSTALL_INCLUDEDIR}/rematch)
foreach(folder IN LISTS rematch_header_folders)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder}/ DESTINATION ${rematch_include_folder}/${folder}
    FILES_MATCHING PATTERN "*.h")
endforeach()
foreach(header IN LISTS rematch_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${CMAKE_SOURCE_DIR}/${header} DESTINATION ${rematch_include_folder}/${folder})
endforeach()

if(REMATCH_LIBTORCH)
  install(TARGETS rematch_cli_libtorch RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS rematch_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${rematch_packaged} EXPORT rematchTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT rematchTargets NAMESPACE rematch:: DESTINATION ${rematch_package_folder})
configure_package_config_file(${CMAKE_SOURCE_DIR}/scripts/cmake/rematchConfig.cmake.in
  ${CMAKE_BINARY_DIR}/rematchConfig.cmake INSTALL_DESTINATION ${rematch_package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rematchConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/rematchConfig.cmake ${CMAKE_BINARY_DIR}/rematchConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/scripts/cmake/FindLibTorch.cmake DESTINATION ${rematch_package_folder})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
