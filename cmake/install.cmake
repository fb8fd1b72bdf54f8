# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: libraries, headers, pkg-config and CMake files, the command, its manual pages and completions.
# Manual pages and completions are printed by the command itself, from the table that its parser uses.
include(CMakePackageConfigHelpers)

install(TARGETS lacuna lacuna_static lacuna_shared EXPORT lacunaTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(LAC_HAS_GRAPHVIZ)
  install(TARGETS lacuna_draw RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/lacuna)
endif()
if(LAC_HAS_MPI)
  install(TARGETS lacuna_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lacuna)
endif()
if(LAC_HAS_ORT)
  install(TARGETS lacuna_ort LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lacuna)
endif()
install(DIRECTORY include/lacuna DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

set(LAC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
configure_package_config_file(cmake/lacunaConfig.cmake.in ${PROJECT_BINARY_DIR}/lacunaConfig.cmake
  INSTALL_DESTINATION ${LAC_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lacunaConfig.cmake ${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake
  DESTINATION ${LAC_CMAKE_DIR})
install(EXPORT lacunaTargets NAMESPACE lacuna:: DESTINATION ${LAC_CMAKE_DIR})
# The folder may be moved, and `cmake --install --prefix` names another one: paths begin where the file is.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(LAC_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(LAC_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  set(LAC_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(LAC_PC_${dir} ${CMAKE_INSTALL_${dir}})
  endif()
endforeach()
configure_file(cmake/lacuna.pc.in ${PROJECT_BINARY_DIR}/lacuna.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lacuna.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The verbs are read from the one table, so that a new verb brings its page without a change here.
file(STRINGS cli/verbs.def verb_lines REGEX "^LAC_VERB\\(")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/verbs.def)
set(pages ${PROJECT_BINARY_DIR}/man/lacuna.1)
set(print_pages COMMAND lacuna help --man > ${PROJECT_BINARY_DIR}/man/lacuna.1)
foreach(line IN LISTS verb_lines)
  string(REGEX REPLACE "^LAC_VERB\\(([a-z]+),.*" "\\1" verb "${line}")
  list(APPEND pages ${PROJECT_BINARY_DIR}/man/lacuna-${verb}.1)
  list(APPEND print_pages COMMAND lacuna help --man ${verb} > ${PROJECT_BINARY_DIR}/man/lacuna-${verb}.1)
endforeach()
set(shells ${PROJECT_BINARY_DIR}/completion/lacuna.bash ${PROJECT_BINARY_DIR}/completion/_lacuna
  ${PROJECT_BINARY_DIR}/completion/lacuna.fish)
if(NOT CMAKE_CROSSCOMPILING)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man ${PROJECT_BINARY_DIR}/completion)
  add_custom_command(OUTPUT ${pages} ${shells} ${print_pages}
    COMMAND lacuna help --completion bash > ${PROJECT_BINARY_DIR}/completion/lacuna.bash
    COMMAND lacuna help --completion zsh > ${PROJECT_BINARY_DIR}/completion/_lacuna
    COMMAND lacuna help --completion fish > ${PROJECT_BINARY_DIR}/completion/lacuna.fish
    DEPENDS lacuna)
  add_custom_target(pages ALL DEPENDS ${pages} ${shells})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  set(share ${PROJECT_BINARY_DIR}/completion)
  install(FILES ${share}/lacuna.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lacuna)
  install(FILES ${share}/_lacuna DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${share}/lacuna.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
