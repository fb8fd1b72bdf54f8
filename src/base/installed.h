/* SPDX-License-Identifier: Apache-2.0
 * Files of the installation that this code belongs to: programs that it starts and plug-ins that it
 * loads. */
#ifndef LACI_BASE_INSTALLED_H
#define LACI_BASE_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

/** Looks for the regular file `name`, "libexec/lacuna/lacuna-draw" say, next to the code that runs
 * now, so that a build folder and an installation that was moved have their own: in the up to three
 * folders above the library, or the program that it is a part of. Only a file of the owner of this
 * code counts, and one that nobody else may write: above the folder /tmp/x, anybody may have put
 * something. False where there is none. */
bool laci_file_installed(const char *name, char path[PATH_MAX]);

#endif
