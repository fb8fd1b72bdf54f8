/* SPDX-License-Identifier: Apache-2.0
 * lac_network_create: makes a model from a network of src/arch, without a file. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "lacuna/train.h"

void lac_network_options_init(lac_network_options *options, size_t size) {
  const lac_network_options usual = {.size = sizeof usual};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

const char *const *lac_network_names(int *n) { return laci_arch_names(n); }

static bool has_prefix(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *lac_network_recipe(const char *name) {
  if (!name) return "resnet-sgd";
  const bool small = has_prefix(name, "cifar-") || strcmp(name, "digits") == 0;
  return small ? "cifar" : has_prefix(name, "resnext") ? "resnext" : "resnet-sgd";
}

lac_status lac_network_create(const lac_network_options *options, lac_model **model,
                              lac_error *err) {
  if (model) *model = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"options", options}, {"model", model},
                                   {"name", options ? options->name : NULL});
  lac_network_options own;
  if (!st) st = laci_take_network_options(options, &own, err);
  if (st) return st;
  laci_arch_options o = {.name = own.name,
                         .n_classes = own.classes,
                         .image_size = own.image_size,
                         .conv_shortcut = own.conv_shortcut,
                         .seed = own.seed};
  lac_model *made = NULL;
  st = laci_model_create_empty(own.name, &made, err);
  if (!st) st = laci_arch_build(&o, &made->graph, err);
  if (!st) {
    made->inferred->assumed = laci_alloc(1, 1); /* "": shapes were inferred without any user option,
                                                   when the network was built */
    if (!made->inferred->assumed) st = laci_fail_memory(err, "the model");
  }
  if (st) lac_model_destroy(made);
  else *model = made;
  return st;
}
