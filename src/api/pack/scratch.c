/* SPDX-License-Identifier: Apache-2.0
 * Makes and removes a temporary folder. */
#include "api/pack/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/temporary.h"

static const char *temporary_parent_folder(void) {
  const char *parent = getenv("TMPDIR");
  return parent && parent[0] ? parent : "/tmp";
}

lac_status laci_scratch_create(laci_scratch *scratch, lac_error *err) {
  scratch->lock = laci_temporary_create_folder(temporary_parent_folder(), scratch->folder,
                                               sizeof scratch->folder);
  if (scratch->lock >= 0) return LAC_OK;
  scratch->folder[0] = '\0';
  return laci_fail(err, LAC_IO, "%s: cannot make a temporary folder: %s", temporary_parent_folder(),
                   strerror(errno));
}

lac_status laci_scratch_path(const laci_scratch *scratch, const char *name, char path[PATH_MAX],
                             lac_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s", scratch->folder, name);
  if (n > 0 && n < PATH_MAX) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: the name is too long for a temporary file", name);
}

void laci_scratch_hide_paths(const laci_scratch *scratch, lac_error *err) {
  char from[PATH_MAX + 1], to[PATH_MAX + 32];
  if (!scratch->folder[0]) return;
  (void)snprintf(from, sizeof from, "%s/", scratch->folder);
  (void)snprintf(to, sizeof to, "a temporary copy in %s, ", temporary_parent_folder());
  laci_error_replace_text(err, from, to);
}

void laci_scratch_remove(laci_scratch *scratch) {
  if (!scratch->folder[0]) return;
  laci_temporary_remove_folder(scratch->folder, scratch->lock);
  scratch->folder[0] = '\0';
}
