/* SPDX-License-Identifier: Apache-2.0
 * Making and removing a temporary folder. */
#include "api/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

lac_status laci_scratch_create(laci_scratch *scratch, lac_error *err) {
  const char *parent = getenv("TMPDIR");
  int n = snprintf(scratch->folder, sizeof scratch->folder, "%s/lacuna-XXXXXX",
                   parent && parent[0] ? parent : "/tmp");
  bool fits = n > 0 && (size_t)n < sizeof scratch->folder;
  if (!fits) errno = ENAMETOOLONG;
  if (fits && mkdtemp(scratch->folder)) return LAC_OK;
  lac_status st = laci_fail(err, LAC_IO, "%s: cannot make a temporary folder: %s", scratch->folder,
                            strerror(errno));
  scratch->folder[0] = '\0';
  return st;
}

lac_status laci_scratch_path(const laci_scratch *scratch, const char *name, char path[PATH_MAX],
                             lac_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s", scratch->folder, name);
  if (n > 0 && n < PATH_MAX) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s/%s: the name is too long", scratch->folder, name);
}

void laci_scratch_remove(laci_scratch *scratch) {
  if (!scratch->folder[0]) return;
  DIR *files = opendir(scratch->folder);
  for (struct dirent *file; files && (file = readdir(files));) {
    if (strcmp(file->d_name, ".") == 0 || strcmp(file->d_name, "..") == 0) continue;
    (void)unlinkat(dirfd(files), file->d_name, 0);
  }
  if (files) (void)closedir(files);
  (void)rmdir(scratch->folder);
  scratch->folder[0] = '\0';
}
