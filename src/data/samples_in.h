/* SPDX-License-Identifier: Apache-2.0
 * The interface of the kinds of samples (images, arrays, synthetic ones): each finds how many
 * samples there are, and reads them by number. */
#ifndef LACI_DATA_SAMPLES_IN_H
#define LACI_DATA_SAMPLES_IN_H

#include "base/memory.h"
#include "data/samples.h"

typedef struct laci_samples_kind {
  /* opens the data: sets the fields own, types and available */
  lac_status (*open)(laci_samples *samples, lac_error *err);
  /* sets the field labels, if the data have labels, once the number of samples is known; NULL: the
   * data never have labels */
  lac_status (*label)(laci_samples *samples, lac_error *err);
  /* reads n samples, from place `first` on, into the batches of all inputs: to[input] is the batch
   * of one input */
  lac_status (*read)(laci_samples *samples, int64_t first, int64_t n, void *const *to,
                     lac_error *err);
  void (*close)(laci_samples *samples); /* frees `own`, which may be NULL */
  const char *noun; /* the samples' name in descriptions: "images of"; NULL: synthetic samples, of
                       which there are any number */
} laci_samples_kind;

struct laci_samples {
  const laci_samples_kind *kind;
  laci_samples_options options;
  laci_arena arena;
  const char *path, *text;
  laci_type *types;       /* [n_inputs] the type of each input for one sample */
  int *axes;              /* [n_inputs] the axis of each input along which samples form a batch; -1:
                             none */
  void **constants;       /* [n_inputs] the content of an input that is the same for all samples;
                             NULL: samples differ */
  bool is_single;         /* every batch must consist of a single sample */
  int n_shape_sets;       /* number of shape sets; 1: all samples have the shapes of `types` */
  laci_shape *shape_sets; /* [n_shape_sets, n_inputs] the input shapes of each shape set; NULL:
                             n_shape_sets is 1 */
  int *shape_set_of;      /* [available] the shape set of each sample in the data; NULL:
                             n_shape_sets is 1 */
  int64_t available;      /* number of samples in the data */
  int64_t taken;          /* number of different samples that are used */
  int64_t count, held_back, judging;
  int64_t *labels; /* [count + judging] class of each sample; NULL: there are no labels */
  void *own;
};

/** Returns the index, in the data, of the sample at a place, 0 <= place < count + judging. *copy: 0
 * if the sample is unchanged; else the number, from 1 on, of its randomly changed copy. */
int64_t laci_samples_data_index_and_copy(const laci_samples *samples, int64_t place, int *copy);

/** If options->constants has a value for the input, makes the input a constant: sets its content,
 * type and axis. *found: whether there is such a value. Fails LAC_BAD_SHAPE (an open size that is
 * not the batch), LAC_BAD_VALUE (no number of the input's type), LAC_NO_MEMORY.
 * (samples_constant.c) */
LAC_MUST_CHECK lac_status laci_samples_make_constant(laci_samples *samples, int input, bool *found,
                                                     lac_error *err);
/** Fills an input's batch of n samples with the input's constant. */
void laci_samples_copy_constant(const laci_samples *samples, int input, int64_t n, void *batch);
/** Checks options->constants. Fails LAC_BAD_ARGUMENT for one whose name is no input of the network,
 * or that is given twice. */
LAC_MUST_CHECK lac_status laci_samples_check_constants(const laci_samples *samples, lac_error *err);

extern const laci_samples_kind laci_samples_of_images, laci_samples_of_arrays,
    laci_samples_of_files, laci_samples_synthetic, laci_samples_of_drawn;

/** Returns the data set of images and their preprocessing; NULL: the samples are no images. */
const laci_dataset *laci_samples_image_set(const laci_samples *samples,
                                           laci_preprocessing *preprocessing);

#endif
