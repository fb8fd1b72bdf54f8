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
install(FILES $<TARGET_FILE:lacuna_shared> DESTINATION lacuna/lib RENAME liblacuna.so COMPONENT python)
install(PROGRAMS $<TARGET_FILE:lacuna> DESTINATION lacuna/bin COMPONENT python)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION lacuna COMPONENT python)
