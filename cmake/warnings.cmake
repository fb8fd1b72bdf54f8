# SPDX-License-Identifier: Apache-2.0
# Warnings and code generation flags of all our own C (not of generated code).
# -Wconversion is left out: it makes more casts than it finds mistakes.
add_library(lacuna_warnings INTERFACE)
target_compile_options(lacuna_warnings INTERFACE $<$<COMPILE_LANGUAGE:C>:
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
  -Wundef -Wcast-qual -Wvla -Wformat=2 -Wno-format-nonliteral -Wold-style-definition
  # a * b + c is two roundings everywhere: results are the same bytes on every instruction set
  -ffp-contract=off>)
if(LAC_WERROR)
  target_compile_options(lacuna_warnings INTERFACE -Werror)
endif()
