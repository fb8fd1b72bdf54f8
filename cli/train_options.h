/* SPDX-License-Identifier: Apache-2.0
 * From the command line of train and finetune to the library's options. */
#ifndef CLI_TRAIN_OPTIONS_H
#define CLI_TRAIN_OPTIONS_H

#include "args.h"
#include "lacuna/finetune.h"

enum { TRAIN_ARCH_BYTES = 64, TRAIN_MOST_BOUNDARIES = 8 };

/** Options with what they point to. */
typedef struct train_options {
  char arch[TRAIN_ARCH_BYTES]; /* empty: finetune */
  double boundaries[TRAIN_MOST_BOUNDARIES];
  lac_finetune_options library; /* views of args and of this */
} train_options;

/** Fills options, which stay where they are. What cannot be together is refused: LAC_BAD_ARGUMENT.
 * With --print only the settings of the training itself have to be right. */
LAC_MUST_CHECK lac_status train_options_read(const arguments *args, train_options *options,
                                             lac_error *err);

/** Prints the settings of the recipe with what options change and, with a folder of data, what this
 * run becomes of them: steps, warm-up, rate. data: NULL for none. */
LAC_MUST_CHECK lac_status train_options_print(const train_options *options, const char *data,
                                              FILE *out, lac_error *err);

#endif
