# SPDX-License-Identifier: Apache-2.0
# ONNX's wire format: protoc-c makes onnx.pb-c.{c,h} from src/onnx/onnx.proto in the build tree. Generated code is
# compiled without our warnings, and its folder is a system include, so that it cannot break a strict build.
find_program(PROTOC_C NAMES protoc-c REQUIRED)
set(LAC_ONNX_INCLUDE ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${LAC_ONNX_INCLUDE})
add_custom_command(
  OUTPUT ${LAC_ONNX_INCLUDE}/onnx.pb-c.c ${LAC_ONNX_INCLUDE}/onnx.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${LAC_ONNX_INCLUDE} -I${PROJECT_SOURCE_DIR}/src/onnx
          ${PROJECT_SOURCE_DIR}/src/onnx/onnx.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/src/onnx/onnx.proto
  VERBATIM)
add_library(lacuna_onnx OBJECT ${LAC_ONNX_INCLUDE}/onnx.pb-c.c)
target_include_directories(lacuna_onnx SYSTEM PUBLIC ${LAC_ONNX_INCLUDE})
target_link_libraries(lacuna_onnx PUBLIC PkgConfig::DEPS)
target_compile_options(lacuna_onnx PRIVATE -w)
