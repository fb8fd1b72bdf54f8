# SPDX-License-Identifier: Apache-2.0
# Parts that may be left out. AUTO takes what is there, ON fails where it is missing, OFF does without. What is left out
# says so where it is asked for; tests that need it are left out with it (tests/CMakeLists.txt).
set(LAC_JPEG AUTO CACHE STRING "JPEG images as data, by libjpeg: AUTO, ON or OFF")
set(LAC_GRAPHVIZ AUTO CACHE STRING "Drawings but .dot, by graphviz: AUTO, ON or OFF")

# lac_optional(NAME MODULE...): LAC_HAS_NAME and, where it is true, the target PkgConfig::NAME.
macro(lac_optional name)
  set_property(CACHE LAC_${name} PROPERTY STRINGS AUTO ON OFF)
  set(LAC_HAS_${name} OFF)
  if(LAC_${name} STREQUAL "AUTO")
    pkg_check_modules(${name} IMPORTED_TARGET ${ARGN})
  elseif(LAC_${name})
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${ARGN})
  endif()
  if(LAC_${name} AND ${name}_FOUND)
    set(LAC_HAS_${name} ON)
  endif()
  message(STATUS "${name}: ${LAC_HAS_${name}}")
endmacro()

lac_optional(JPEG libjpeg)
# libgvc finds its renderers at run time; SVG, PDF and PNG text comes from its cairo and pango plug-in.
lac_optional(GRAPHVIZ libcgraph libgvc)
set(LAC_JPEG_LIBRARY)
set(LAC_JPEG_MODULE)
if(LAC_HAS_JPEG)
  set(LAC_JPEG_LIBRARY PkgConfig::JPEG)
  set(LAC_JPEG_MODULE libjpeg)
endif()
