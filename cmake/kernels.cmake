# SPDX-License-Identifier: Apache-2.0
# Kernels: src/kernel/FAMILY/NAME_isa.c is compiled once for every instruction set, with its flags and its name as LACI_ISA;
# NAME_SET.c (NAME_avx2.c, NAME_scalar.c) is the text for that set alone and takes NAME_isa.c's place. Other files are
# plain code. Only what is named so gets the flags; the choice between variants is made at run time (src/cpu).
option(LAC_SANITIZE_KERNELS "Sanitize the kernels of every instruction set, not the scalar ones alone" ON)
set(LAC_KERNEL_SETS scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  list(APPEND LAC_KERNEL_SETS avx2 avx512f avx512 avx512bf16 avx512vbmi2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  list(APPEND LAC_KERNEL_SETS neon) # every processor has it: no flag
endif()
set(LAC_KERNEL_FLAGS_avx2 -mavx2 -mfma)
set(LAC_KERNEL_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512)
set(LAC_KERNEL_FLAGS_avx512bf16 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mprefer-vector-width=512)
set(LAC_KERNEL_FLAGS_avx512f -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
set(LAC_KERNEL_FLAGS_avx512vbmi2 ${LAC_KERNEL_FLAGS_avx512} -mavx512vbmi -mavx512vbmi2 -mbmi2)
# A set that few texts are for names them.
set(LAC_KERNEL_ONLY_avx512bf16 attention gradient)
set(LAC_KERNEL_ONLY_avx512f peak vector)
set(LAC_KERNEL_ONLY_avx512vbmi2 vector)

# Takes the kernels of instruction sets out of the list `sources` and makes an object library of each set, named
# lacuna_kernel_SET; `libraries` becomes their names.
function(lac_add_kernels sources libraries)
  set(each ${${sources}})
  list(FILTER each INCLUDE REGEX "/kernel/.*_isa\\.c$")
  set(made)
  foreach(isa IN LISTS LAC_KERNEL_SETS)
    set(own ${${sources}})
    list(FILTER own INCLUDE REGEX "/kernel/.*_${isa}\\.c$")
    set(texts ${own})
    foreach(text IN LISTS each)
      get_filename_component(name ${text} NAME)
      string(REPLACE "_isa.c" "" name ${name})
      string(REPLACE "_isa.c" "_${isa}.c" of_its_own ${text})
      if(NOT of_its_own IN_LIST own AND (NOT LAC_KERNEL_ONLY_${isa} OR name IN_LIST LAC_KERNEL_ONLY_${isa}))
        list(APPEND texts ${text})
      endif()
    endforeach()
    string(TOUPPER ${isa} ISA)
    add_library(lacuna_kernel_${isa} OBJECT ${texts})
    target_include_directories(lacuna_kernel_${isa} PRIVATE include src)
    target_link_libraries(lacuna_kernel_${isa} PRIVATE lacuna_warnings)
    target_compile_definitions(lacuna_kernel_${isa} PRIVATE LACI_ISA=${isa} LACI_ISA_${ISA})
    target_compile_options(lacuna_kernel_${isa} PRIVATE ${LAC_KERNEL_FLAGS_${isa}})
    if(LAC_SANITIZE AND NOT LAC_SANITIZE_KERNELS AND NOT isa STREQUAL scalar)
      target_compile_options(lacuna_kernel_${isa} PRIVATE -fno-sanitize=all)
    endif()
    list(APPEND made lacuna_kernel_${isa})
  endforeach()
  # A root of a negative number sets errno, which keeps loops from becoming vectors.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernel/optimizer/update_isa.c PROPERTIES
    COMPILE_OPTIONS -fno-math-errno)
  # Where sums do not lie in registers, a sanitizer looks at each use of one: all that is calibrated takes three times as long.
  if(LAC_SANITIZE)
    file(GLOB dots ${PROJECT_SOURCE_DIR}/src/kernel/gram/dots_*.c)
    set_source_files_properties(${dots} PROPERTIES COMPILE_OPTIONS -O2)
  endif()
  set(kept ${${sources}})
  list(FILTER kept EXCLUDE REGEX "/kernel/.*_(isa|scalar|avx2|avx512|avx512bf16|neon)\\.c$")
  set(${sources} ${kept} PARENT_SCOPE)
  set(${libraries} ${made} PARENT_SCOPE)
endfunction()
