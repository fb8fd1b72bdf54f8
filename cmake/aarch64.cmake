# SPDX-License-Identifier: Apache-2.0
# Cross build for 64-bit ARM on Debian: its compiler, the libraries that tools/check_aarch64 unpacked in LAC_ROOT, and
# qemu-user to run the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LAC_ROOT)
set(CMAKE_SYSROOT ${LAC_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${LAC_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${LAC_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${LAC_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${LAC_ROOT}/usr/share/pkgconfig)
