/* SPDX-License-Identifier: Apache-2.0
 * lac_network_create: a network of src/arch as a model that came from no file. */
#include <string.h>

#include "api/model_in.h"
#include "arch/arch.h"
#include "base/error.h"
#include "lacuna/train.h"

const char *const *lac_network_names(int *n) { return laci_arch_names(n); }

static char *copy_text(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = laci_alloc(n, 1);
  if (copy) memcpy(copy, text, n);
  return copy;
}

lac_status lac_network_create(const lac_network_options *options, lac_model **model,
                              lac_error *err) {
  if (model) *model = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"options", options}, {"model", model},
                                   {"name", options ? options->name : NULL});
  if (st) return st;
  laci_arch_options o = {.name = options->name,
                         .n_classes = options->classes,
                         .image_size = options->image_size,
                         .conv_shortcut = options->conv_shortcut,
                         .seed = options->seed};
  lac_model *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the model");
  st = laci_arch_build(&o, &made->graph, err);
  made->path = copy_text(options->name);
  made->assumed = copy_text(""); /* shapes were inferred while it was built */
  made->inferred = true;
  if (!st && !(made->path && made->assumed)) st = laci_fail_memory(err, "the model");
  if (st) lac_model_destroy(made);
  else *model = made;
  return st;
}
