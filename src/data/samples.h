/* SPDX-License-Identifier: Apache-2.0
 * Inputs of a network to look at it with, a few hundred of them: labelled images of any data set
 * (dataset.h), or arrays of NumPy, one for each input.
 *
 * Which samples are taken follows from the seed alone: a permutation of all there are, of which the
 * first n count. Images may come in copies that are changed as training changes them; those that
 * are held back for judging come last, once and as they are. Next: rows.h, npz.h. */
#ifndef LACI_DATA_SAMPLES_H
#define LACI_DATA_SAMPLES_H

#include "data/prepare.h"
#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_dataset laci_dataset;
typedef struct laci_pool laci_pool;
typedef struct laci_samples laci_samples;

/** An input of a network: [samples, ...] of floats or integers; sizes that it leaves open are those
 * of the data. */
typedef struct laci_sample_input {
  const char *name;
  laci_type type;
} laci_sample_input;

typedef struct laci_samples_options {
  int64_t n;             /* how many, before copies; fewer where the data have fewer */
  uint64_t seed;         /* of which, and of the copies' changes */
  int copies;            /* of each image that is not held back, changed at random; 0: none */
  int held_back_part;    /* one of so many samples is held back, one at least where there are two;
                            0: none */
  int64_t judging_least; /* of further samples: where the data have fewer, n is less,
                            down to half of the data */
  int64_t judging_most;  /* so many further ones are taken, as they are, to judge by; 0: none */
  const char *known;     /* names of the network's classes, one a line: folders of images get their
                            numbers, and where one is none of these there are no labels; NULL:
                            not known */
  int resize, crop;      /* pixels; 0: as is usual with such data */
  const float *mean, *std;         /* [3] grey levels; NULL: as is usual with such data */
  const laci_sample_input *inputs; /* [n_inputs] of the network */
  int n_inputs;
  laci_pool *pool;     /* reads images at the same time; NULL: one after the other */
  laci_budget *budget; /* what is held is added; NULL: no limit */
} laci_samples_options;

/** DATA is a folder of images in any form that dataset.h knows (its part for training; where there
 * is none, the other), a .npy file (of a network with one input), a .npz file or a folder of .npy
 * files: NAME.npy for the input NAME. An array `labels` of integers, in addition to those of the
 * inputs, says the class of each sample.
 *
 * Images: whether they fit the input is asked elsewhere (laci_samples_dataset). Arrays: fails
 * LAC_BAD_SHAPE where one does not fit its input, saying what was found and wanted, LAC_NOT_FOUND
 * where an input has none, LAC_BAD_ARGUMENT for arrays that are no input's, different numbers of
 * samples, none at all, and for what is about images only (copies, resize, crop, mean, std); and as
 * laci_dataset_open, laci_rows_open, laci_npz_open. The pool must outlive the samples;
 * all else need not. */
LAC_MUST_CHECK lac_status laci_samples_open(const char *path, const laci_samples_options *options,
                                            laci_samples **samples, lac_error *err);
void laci_samples_close(laci_samples *samples); /* NULL is fine */

/** All of them, copies counted, and how many of these, the last ones, are held back. */
int64_t laci_samples_count(const laci_samples *samples);
int64_t laci_samples_held_back(const laci_samples *samples);
/** Further samples, at places [count, count + judging) of batches: none of them is among the
 * others. */
int64_t laci_samples_judging(const laci_samples *samples);
/** How many the data have. */
int64_t laci_samples_available(const laci_samples *samples);
/** What batches of an input hold: F32 or I64; dims[0] is 1. */
const laci_type *laci_samples_type(const laci_samples *samples, int input);
/** [count + judging] the class of each sample; NULL: the data do not say. */
const int64_t *laci_samples_labels(const laci_samples *samples);
/** Where the samples come from, NULL for arrays; and how its images are prepared. */
const laci_dataset *laci_samples_dataset(const laci_samples *samples,
                                         laci_preprocessing *preprocessing);
/** "2048 of 50000 images of DIR, 256 held back" */
const char *laci_samples_text(const laci_samples *samples);

/** Samples [first, first + n) of all: to[input] is [n, ...] of its type. One call at a time. Fails
 * as laci_dataset_sample, laci_rows_read_f32. */
LAC_MUST_CHECK lac_status laci_samples_batch(laci_samples *samples, int64_t first, int64_t n,
                                             void *const *to, lac_error *err);

#endif
