# SPDX-License-Identifier: Apache-2.0
# The Python package with the library and the command in it, for a wheel: python/pyproject.toml asks for the component `python`.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(stage ${PROJECT_BINARY_DIR}/python)
file(GLOB package_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/lacuna/*.py ${PROJECT_SOURCE_DIR}/include/lacuna/*.*
  ${PROJECT_SOURCE_DIR}/cli/*.def)
add_custom_command(OUTPUT ${stage}/lacuna/_abi.py DEPENDS ${package_sources} ${PROJECT_SOURCE_DIR}/python/generate.py
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/generate.py --to ${stage} --cc ${CMAKE_C_COMPILER})
add_custom_target(python DEPENDS ${stage}/lacuna/_abi.py)
install(DIRECTORY ${stage}/lacuna DESTINATION . COMPONENT python PATTERN "__pycache__" EXCLUDE)
install(FILES $<TARGET_FILE:lacuna_shared> DESTINATION lacuna/lib COMPONENT python
  RENAME liblacuna.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# The provider for ONNX Runtime, over the same library: a copy of it inside would make the wheel too large.
if(LAC_HAS_ORT)
  add_library(lacuna_ort_python MODULE ${ORT_SOURCES})
  set_target_properties(lacuna_ort_python PROPERTIES OUTPUT_NAME lacuna_ort LIBRARY_OUTPUT_DIRECTORY ${stage}-ort
    INSTALL_RPATH "$ORIGIN" LINK_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/ort/ort.map)
  target_include_directories(lacuna_ort_python PRIVATE include)
  target_link_libraries(lacuna_ort_python PRIVATE lacuna_warnings lacuna_shared Threads::Threads)
  target_link_options(lacuna_ort_python PRIVATE LINKER:-z,nodelete
    LINKER:--version-script=${PROJECT_SOURCE_DIR}/plugins/ort/ort.map)
  add_dependencies(python lacuna_ort_python)
  install(TARGETS lacuna_ort_python LIBRARY DESTINATION lacuna/lib COMPONENT python)
endif()
# The command, inside of the library: a second copy of the library's code would make the wheel too large. Its program only calls it.
add_library(lacuna_command_objects OBJECT ${CLI_SOURCES} ${PROJECT_SOURCE_DIR}/cli/demo_data.S)
target_compile_definitions(lacuna_command_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:main=lac_command>)
target_compile_options(lacuna_command_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:-fvisibility=default -Wno-missing-prototypes>)
set_target_properties(lacuna_command_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(lacuna_command_objects PRIVATE ${PROJECT_SOURCE_DIR}/cli ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(lacuna_command_objects PRIVATE lacuna_warnings ZLIB::ZLIB)
target_sources(lacuna_shared PRIVATE $<TARGET_OBJECTS:lacuna_command_objects>)
target_link_libraries(lacuna_shared PRIVATE ZLIB::ZLIB)
if(LAC_HAS_YAML)
  target_link_libraries(lacuna_command_objects PRIVATE PkgConfig::YAML)
  target_link_libraries(lacuna_shared PRIVATE PkgConfig::YAML)
endif()
add_executable(lacuna_command ${PROJECT_SOURCE_DIR}/python/command.c)
set_target_properties(lacuna_command PROPERTIES OUTPUT_NAME lacuna RUNTIME_OUTPUT_DIRECTORY ${stage}-bin INSTALL_RPATH "$ORIGIN/../lib")
target_link_libraries(lacuna_command PRIVATE lacuna_warnings lacuna_shared)
add_dependencies(python lacuna_command)
install(TARGETS lacuna_command RUNTIME DESTINATION lacuna/bin COMPONENT python)
# What draws SVG, for the wheel lacuna-draw (python/lacuna-draw): its own, since graphviz's libraries ask for a newer libc.
# PDF and PNG would take pango and cairo, which are larger than all of Lacuna.
pkg_check_modules(GRAPHVIZ_SVG IMPORTED_TARGET libcgraph libgvc)
foreach(part IN ITEMS core dot_layout)
  find_library(GRAPHVIZ_${part} gvplugin_${part} HINTS ${GRAPHVIZ_SVG_LIBRARY_DIRS} ${GRAPHVIZ_SVG_LIBDIR} PATH_SUFFIXES graphviz)
endforeach()
if(GRAPHVIZ_SVG_FOUND AND GRAPHVIZ_core AND GRAPHVIZ_dot_layout)
  add_executable(lacuna_draw_python ${PROJECT_SOURCE_DIR}/draw/main.c ${PROJECT_SOURCE_DIR}/draw/columns.c)
  target_compile_definitions(lacuna_draw_python PRIVATE LAC_DRAW_SVG_ALONE)
  target_include_directories(lacuna_draw_python PRIVATE ${PROJECT_SOURCE_DIR}/draw)
  cmake_path(GET GRAPHVIZ_core PARENT_PATH parts)
  set_target_properties(lacuna_draw_python PROPERTIES OUTPUT_NAME lacuna-draw RUNTIME_OUTPUT_DIRECTORY ${stage}-bin
    INSTALL_RPATH ${parts})
  target_link_libraries(lacuna_draw_python PRIVATE lacuna_warnings PkgConfig::GRAPHVIZ_SVG ${GRAPHVIZ_core} ${GRAPHVIZ_dot_layout} m)
  install(TARGETS lacuna_draw_python RUNTIME DESTINATION lacuna/libexec/lacuna COMPONENT draw EXCLUDE_FROM_ALL)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION lacuna COMPONENT python)
