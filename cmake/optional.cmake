# SPDX-License-Identifier: Apache-2.0
# Parts that may be left out. AUTO takes what is there, ON fails where it is missing, OFF does without. What is left out
# says so where it is asked for; tests that need it are left out with it (tests/CMakeLists.txt).
set(LAC_JPEG AUTO CACHE STRING "JPEG images as data, by libjpeg: AUTO, ON or OFF")
set(LAC_PNG AUTO CACHE STRING "PNG images as data, by libpng: AUTO, ON or OFF")
set(LAC_WEBP AUTO CACHE STRING "WebP images as data, by libwebp: AUTO, ON or OFF")
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
lac_optional(PNG libpng>=1.6)
lac_optional(WEBP libwebp)
# libgvc finds its renderers at run time; SVG, PDF and PNG text comes from its cairo and pango plug-in.
lac_optional(GRAPHVIZ libcgraph libgvc)
# Those of data: what the library links, what users of the static one need, and of src/data/NAME.c and NAME_none.c the one
# that is not compiled.
set(LAC_DATA_LIBRARIES)
set(LAC_DATA_MODULES)
set(LAC_DATA_PARTS)
set(LAC_DATA_LEFT_OUT)
foreach(part IN ITEMS JPEG:libjpeg PNG:libpng WEBP:libwebp)
  string(REPLACE ":" ";" part ${part})
  list(GET part 0 name)
  list(GET part 1 module)
  string(TOLOWER ${name} file)
  if(LAC_HAS_${name})
    list(APPEND LAC_DATA_LIBRARIES PkgConfig::${name})
    string(APPEND LAC_DATA_MODULES " ${module}")
    list(APPEND LAC_DATA_PARTS ${name}:${module})
    list(APPEND LAC_DATA_LEFT_OUT ${file}_none)
  else()
    list(APPEND LAC_DATA_LEFT_OUT ${file})
  endif()
endforeach()
