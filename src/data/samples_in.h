/* SPDX-License-Identifier: Apache-2.0
 * The two kinds of samples: each finds how many there are, and reads one by its number. */
#ifndef LACI_DATA_SAMPLES_IN_H
#define LACI_DATA_SAMPLES_IN_H

#include "base/memory.h"
#include "data/samples.h"

typedef struct laci_samples_kind {
  /* Places first .. first + n - 1 of the samples to the batch of each input. */
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
  int64_t available; /* of the data */
  int64_t taken;     /* of those, by the permutation */
  int64_t count, held_back, judging;
  int64_t *labels; /* [count + judging], or NULL */
  void *own;
};

/** Which of the data's samples is at a place, 0 <= place < count + judging; *copy: 0 as it is,
 * 1 and on: changed at random. */
int64_t laci_samples_place(const laci_samples *samples, int64_t place, int *copy);

/** The kinds' openings set kind, own, types and available. Labels come when all is counted. */
LAC_MUST_CHECK lac_status laci_samples_open_images(laci_samples *samples, lac_error *err);
LAC_MUST_CHECK lac_status laci_samples_open_arrays(laci_samples *samples, lac_error *err);
LAC_MUST_CHECK lac_status laci_samples_label_images(laci_samples *samples, lac_error *err);
LAC_MUST_CHECK lac_status laci_samples_label_arrays(laci_samples *samples, lac_error *err);

/** Is the path a .npy, a .npz or a folder of .npy? */
bool laci_samples_are_arrays(const char *path);

/** Of images; NULL where the samples are none. */
const laci_dataset *laci_samples_images(const laci_samples *samples,
                                        laci_preprocessing *preprocessing);

#endif
