/* SPDX-License-Identifier: Apache-2.0
 * The interface of the two kinds of samples (images, arrays): each finds how many samples there
 * are, and reads them by number. */
#ifndef LACI_DATA_SAMPLES_IN_H
#define LACI_DATA_SAMPLES_IN_H

#include "base/memory.h"
#include "data/samples.h"

typedef struct laci_samples_kind {
  /* reads the samples at places first .. first + n - 1 into the batch of each input */
  lac_status (*read)(laci_samples *samples, int64_t first, int64_t n, void *const *to,
                     lac_error *err);
  void (*close)(laci_samples *samples); /* frees `own`, which may be NULL */
  const char *noun;                     /* "images of" */
} laci_samples_kind;

struct laci_samples {
  const laci_samples_kind *kind;
  laci_samples_options options;
  laci_arena arena;
  const char *path, *text;
  laci_type *types;  /* [n_inputs] dims[0] is 1 */
  int64_t available; /* samples in the data */
  int64_t taken;     /* number of different samples that are used */
  int64_t count, held_back, judging;
  int64_t *labels; /* [count + judging], or NULL */
  void *own;
};

/** Returns which sample of the data is at a place, 0 <= place < count + judging; *copy: 0
 * unchanged, from 1 on the number of a random change. */
int64_t laci_samples_index_at(const laci_samples *samples, int64_t place, int *copy);

/** Open samples of one kind each: set kind, own, types and available. The functions for labels are
 * called later, when the number of samples is known. */
LAC_MUST_CHECK lac_status laci_samples_open_images(laci_samples *samples, lac_error *err);
LAC_MUST_CHECK lac_status laci_samples_open_arrays(laci_samples *samples, lac_error *err);
LAC_MUST_CHECK lac_status laci_samples_label_images(laci_samples *samples, lac_error *err);
LAC_MUST_CHECK lac_status laci_samples_label_arrays(laci_samples *samples, lac_error *err);

/** Is the path a .npy, a .npz or a folder of .npy? */
bool laci_samples_are_arrays(const char *path);

/** Returns the data set of images and their preprocessing; NULL if the samples are arrays. */
const laci_dataset *laci_samples_image_set(const laci_samples *samples,
                                           laci_preprocessing *preprocessing);

#endif
