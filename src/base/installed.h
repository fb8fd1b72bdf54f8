/* SPDX-License-Identifier: Apache-2.0
 * Finds files of the installation that this code belongs to: programs that it starts and plug-ins
 * that it loads. */
#ifndef LACI_BASE_INSTALLED_H
#define LACI_BASE_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

/** Finds the regular file `name`, such as "libexec/lacuna/lacuna-draw", in the up to three folders
 * above the library, or the program, that contains this code. So a build folder and an installation
 * that was moved use their own files. Only a file of the owner of this code that nobody else may
 * write is accepted: otherwise anybody could put a file above a build folder in /tmp. False: there
 * is no such file. */
bool laci_find_installed_file(const char *name, char path[PATH_MAX]);

#endif
