/* SPDX-License-Identifier: Apache-2.0
 * Replaces yaml.c where Lacuna is built without libyaml (-DLAC_YAML=OFF): reading any YAML
 * fails. */
#include "base/error.h"
#include "tree.h"

lac_status tree_read_yaml(const char *text, tree *t, lac_error *err) {
  (void)text;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%s: this Lacuna was built without libyaml; wanted JSON, in a file whose name "
                   "ends in .json",
                   t->path);
}
