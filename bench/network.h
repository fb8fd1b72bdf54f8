/* SPDX-License-Identifier: Apache-2.0
 * The 37 classes of ResNet-50 v1.5 that a search has to order, with rows and channels as in the
 * network: all convolutions (and the classifier) that read a class are its consumers.
 *
 * A stage of `depth` blocks has two classes inside every block, the input of the 3 x 3 and that of
 * the last 1 x 1 convolution, and one between its blocks: the residual sums, read by the first
 * convolution of every later block and by what follows the stage. The stem is one more. */
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H

#include "matrices.h"

enum { NETWORK_MOST_CLASSES = 64 };

typedef struct network_stage {
  int width, depth;
} network_stage;

static const network_stage network_stages[4] = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};

static inline void add_consumer(matrix_form *form, int64_t outer, int64_t inner) {
  form->consumers[form->n_consumers].outer = outer;
  form->consumers[form->n_consumers++].inner = inner;
}

static inline matrix_form *add_class(matrix_form *forms, int *n, int channels) {
  matrix_form *form = &forms[*n];
  *form = (matrix_form){.weights = HETEROGENEOUS, .pattern = {2, 4}, .channels = channels};
  form->seed = 50 + (uint64_t)(*n)++;
  return form;
}

/** Fills forms[0 .. NETWORK_MOST_CLASSES); returns how many classes there are. */
static inline int network_classes(matrix_form *forms) {
  int n = 0;
  matrix_form *form = add_class(forms, &n, 64);
  (void)snprintf(form->name, sizeof form->name, "stem");
  add_consumer(form, 64, 1); /* the first block and its shortcut */
  add_consumer(form, 256, 1);
  for (int s = 0; s < 4; s++) {
    const int width = network_stages[s].width, depth = network_stages[s].depth;
    for (int block = 1; block <= depth; block++) {
      form = add_class(forms, &n, width);
      (void)snprintf(form->name, sizeof form->name, "stage %d block %d, 3 x 3", s + 1, block);
      add_consumer(form, width, 9);
      form = add_class(forms, &n, width);
      (void)snprintf(form->name, sizeof form->name, "stage %d block %d, 1 x 1", s + 1, block);
      add_consumer(form, 4 * width, 1);
    }
    form = add_class(forms, &n, 4 * width);
    (void)snprintf(form->name, sizeof form->name, "stage %d, sums", s + 1);
    for (int block = 2; block <= depth; block++) add_consumer(form, width, 1);
    if (s < 3) {
      add_consumer(form, 2 * width, 1);
      add_consumer(form, 8 * width, 1);
    } else {
      add_consumer(form, 1000, 1);
    }
  }
  return n;
}

#endif
