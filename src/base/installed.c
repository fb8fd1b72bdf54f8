/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares dladdr */
#endif
#include "base/installed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_UP = 3 };

/* Finds the file that contains this code: a shared library, or the running program. */
static bool find_own_binary(char path[PATH_MAX]) {
  static const char here = 0;
  Dl_info ours, program;
  bool in_library =
      dladdr(&here, &ours) && ours.dli_fname &&
      !(dladdr((const void *)getauxval(AT_ENTRY), &program) && program.dli_fbase == ours.dli_fbase);
  if (in_library) return realpath(ours.dli_fname, path) != NULL;
  ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (n > 0) path[n] = '\0';
  return n > 0;
}

/* Does the file belong to the owner of this code, whom the user trusts by running it? */
static bool is_trusted_file(const char *path, uid_t owner) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == owner &&
         !(info.st_mode & S_IWOTH);
}

/* Searches up to three folders above this code, since PREFIX/bin and PREFIX/lib are one folder
 * below PREFIX, PREFIX/lib/x86_64-linux-gnu two; tests in a build folder are as deep. */
bool laci_find_installed_file(const char *name, char path[PATH_MAX]) {
  char self[PATH_MAX];
  struct stat info;
  if (!find_own_binary(self) || stat(self, &info)) return false;
  for (int up = 0; up < MOST_UP; up++) {
    char *slash = strrchr(self, '/');
    if (!slash) return false;
    *slash = '\0';
    int n = snprintf(path, PATH_MAX, "%s/%s", self, name);
    if (n > 0 && n < PATH_MAX && is_trusted_file(path, info.st_uid)) return true;
  }
  return false;
}
