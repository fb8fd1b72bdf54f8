# SPDX-License-Identifier: Apache-2.0
# A kernel's file name says its instruction set: NAME_avx2.c, NAME_avx512.c, NAME_neon.c. Only these files get the
# flags, and other processors do not compile them at all; the choice between them is made at run time (src/cpu).
function(lac_kernel_flags sources)
  set(kept ${${sources}})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    foreach(file IN LISTS kept)
      if(file MATCHES "_avx2\\.c$")
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
      elseif(file MATCHES "_avx512\\.c$")
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
          "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-mprefer-vector-width=512")
      elseif(file MATCHES "_avx512bf16\\.c$")
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
          "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512bf16;-mprefer-vector-width=512")
      endif()
    endforeach()
  else()
    list(FILTER kept EXCLUDE REGEX "_avx(2|512|512bf16)\\.c$")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$") # where every processor has it: no flag
    list(FILTER kept EXCLUDE REGEX "_neon\\.c$")
  endif()
  foreach(file IN LISTS kept) # a root of a negative number sets errno, which keeps loops from becoming vectors
    if(file MATCHES "/kernel/update_[a-z0-9]+\\.c$")
      set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -fno-math-errno)
    endif()
  endforeach()
  set(${sources} ${kept} PARENT_SCOPE)
endfunction()
