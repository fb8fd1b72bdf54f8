# SPDX-License-Identifier: Apache-2.0
# Wire formats: protoc-c makes onnx.pb-c.{c,h}, events.pb-c.{c,h} and example.pb-c.{c,h} from src/onnx/onnx.proto,
# src/train/events.proto and src/data/example.proto in the build tree. Generated code is compiled without our warnings, and its folder is a system include, so that it
# cannot break a strict build.
find_program(PROTOC_C NAMES protoc-c REQUIRED)
set(LAC_ONNX_INCLUDE ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${LAC_ONNX_INCLUDE})
foreach(proto IN ITEMS onnx/onnx train/events data/example)
  get_filename_component(name ${proto} NAME)
  get_filename_component(folder ${PROJECT_SOURCE_DIR}/src/${proto} DIRECTORY)
  add_custom_command(
    OUTPUT ${LAC_ONNX_INCLUDE}/${name}.pb-c.c ${LAC_ONNX_INCLUDE}/${name}.pb-c.h
    COMMAND ${PROTOC_C} --c_out=${LAC_ONNX_INCLUDE} -I${folder} ${folder}/${name}.proto
    DEPENDS ${folder}/${name}.proto
    VERBATIM)
endforeach()
add_library(lacuna_onnx OBJECT ${LAC_ONNX_INCLUDE}/onnx.pb-c.c ${LAC_ONNX_INCLUDE}/events.pb-c.c
  ${LAC_ONNX_INCLUDE}/example.pb-c.c)
target_include_directories(lacuna_onnx SYSTEM PUBLIC ${LAC_ONNX_INCLUDE})
target_link_libraries(lacuna_onnx PUBLIC PkgConfig::DEPS)
target_compile_options(lacuna_onnx PRIVATE -w)
