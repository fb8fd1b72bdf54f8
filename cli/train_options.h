/* SPDX-License-Identifier: Apache-2.0
 * Makes the library's options from the command line of train and finetune. */
#ifndef CLI_TRAIN_OPTIONS_H
#define CLI_TRAIN_OPTIONS_H

#include "args.h"
#include "lacuna/finetune.h"
#include "lacuna/prune.h"

enum { TRAIN_ARCH_BYTES = 64, TRAIN_MOST_BOUNDARIES = 8 };

/** The library's options, and the memory that they point to. */
typedef struct train_options {
  char arch[TRAIN_ARCH_BYTES]; /* the network to build; empty for finetune */
  double boundaries[TRAIN_MOST_BOUNDARIES];
  lac_finetune_options library; /* points to the options below */
  lac_train_options training;   /* points into args and into this struct */
  lac_options pruning;
} train_options;

/** Fills options, which must not be moved afterwards. Fails LAC_BAD_ARGUMENT for bad values and
 * options that exclude each other. With --print only the training's settings are checked. */
LAC_MUST_CHECK lac_status train_options_read(const arguments *args, train_options *options,
                                             lac_error *err);

/** Prints the recipe's settings with the options applied. data: a folder, for which the run's
 * steps, warm-up and rate are printed, too; NULL: none. */
LAC_MUST_CHECK lac_status train_options_print_recipe(const train_options *options, const char *data,
                                                     FILE *out, lac_error *err);

#endif
