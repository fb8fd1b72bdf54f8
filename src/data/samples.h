/* SPDX-License-Identifier: Apache-2.0
 * Sample inputs with which a network is calibrated or tested, a few hundred of them. They are
 * labelled images of any data set (dataset.h), NumPy arrays (one for each input), synthetic images,
 * or inputs of other kinds that are drawn: token ids, sounds, numbers.
 *
 * The seed alone determines which samples are chosen: the first n of a permutation of all. Images
 * may be included in several copies, changed at random as in training. Samples that are held back
 * for judging come last, once and unchanged. Next: rows.h, npz.h. */
#ifndef LACI_DATA_SAMPLES_H
#define LACI_DATA_SAMPLES_H

#include "data/prepare.h"
#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_dataset laci_dataset;
typedef struct laci_pool laci_pool;
typedef struct laci_rows_memory laci_rows_memory;
typedef struct laci_samples laci_samples;

/** An input of a network, of floats or integers. Sizes that its type leaves open are those of the
 * data. */
typedef struct laci_sample_input {
  const char *name;
  laci_type type;
} laci_sample_input;

/** Samples for judging leave the fits so many, or half of all if these are fewer. */
enum { LACI_LEAST_FITTED = 64 };

/** The value of an input whose elements all have this value in all samples. */
typedef struct laci_sample_constant {
  const char *name; /* name of the input */
  double value;
} laci_sample_constant;

/** Synthetic images for a network's only input, which takes images. */
typedef struct laci_synthetic_input {
  int height, width;     /* size of an image in pixels */
  int channels;          /* number of channels: 3, or 1 for grey */
  bool channels_last;    /* [N, H, W, C] instead of [N, C, H, W] */
  const char *range;     /* range of the input's values, as text for messages: "0 to 1"; a
                            literal */
  bool integers;         /* values are rounded to integers */
  const int64_t *chosen; /* [n_chosen] numbers of the images that are the first samples, out of the
                            `candidates` images that can be drawn; read only while the samples are
                            opened. NULL: images 0, 1 .. */
  int64_t n_chosen, candidates;
  const uint8_t *fitted;    /* [n_fitted, channels, height, width] grey levels of images that are
                               used instead of drawn ones; read only while the samples are opened.
                               NULL: none */
  const int64_t *fitted_at; /* [n_fitted] for each fitted image, the number of the synthetic image
                               that it replaces (laci_samples_data_index) */
  int64_t n_fitted;
  float mean[3],
      std[3]; /* mean and deviation of each channel, in grey levels 0..255: the input is (grey -
                 mean) / std */
} laci_synthetic_input;

typedef enum laci_drawn_kind {
  LACI_DRAWN_IDS,       /* random token ids 0 .. below - 1, uniform or as in texts */
  LACI_DRAWN_POSITIONS, /* positions 0, 1 .. along the last axis */
  LACI_DRAWN_SAME,      /* every element is `value` */
  LACI_DRAWN_SOUND,     /* a sound of one channel, values -1 to 1 */
  LACI_DRAWN_NUMBERS,   /* independent normal numbers along the last axis, with `mean` and
                           `deviation` */
} laci_drawn_kind;

/** An input whose samples are drawn by a rule. */
typedef struct laci_drawn_input {
  laci_drawn_kind kind;
  laci_shape shape;              /* shape of one sample; all sizes are known */
  int batch_axis;                /* axis of the input along which samples form a batch; -1: none */
  bool floats;                   /* elements are floats; false: integers */
  int64_t below, value;          /* below: number of token ids */
  double rate;                   /* samples of a sound per second */
  const float *mean, *deviation; /* [last axis] of each number; read only while the samples are
                                    opened. NULL: 0 and `spread` for all */
  double spread;
} laci_drawn_input;

typedef struct laci_samples_options {
  int64_t n;             /* number of distinct samples; fewer if the data have fewer */
  uint64_t seed;         /* random seed for the choice of samples and the changes of copies */
  int copies;            /* number of copies, changed at random, of each image that is not held
                            back; 0: none */
  int held_back_part;    /* one in held_back_part samples is held back, at least one if there are
                            two samples; 0: none is */
  int64_t judging_least; /* minimum number of samples for judging. If the data have too few, n is
                            reduced, but not below LACI_LEAST_FITTED or half of the data */
  int64_t judging_most;  /* maximum number of samples for judging, which are read in addition and
                            unchanged; 0: none. Until there are as many, n is at most half of the
                            data */
  const char *known;     /* names of the network's classes, one in each line, by which folders of
                            images are numbered; if a folder is none of them, there are no labels;
                            NULL: not known */
  int resize, crop;      /* sizes of the preprocessing in pixels; 0: the usual sizes for the data */
  const float *mean, *std;         /* [3] mean and deviation of each channel in grey levels; NULL:
                                      the usual numbers for the data */
  const laci_sample_input *inputs; /* [n_inputs] the network's inputs */
  int n_inputs;
  const laci_rows_memory
      *arrays; /* [n_arrays] the caller's arrays, which are used instead of those of a path: one for
                  each input, and perhaps `labels`; NULL: those of the path are used */
  int n_arrays;
  const laci_sample_constant *constants; /* [n_constants] inputs that have the same value everywhere
                                            and need no array */
  int n_constants;
  const laci_synthetic_input *synthetic; /* synthetic images for the only input, drawn by `seed`,
                                            instead of data; NULL: none */
  const laci_drawn_input *drawn; /* [n_inputs] the rule by which every input is drawn by `seed`,
                                    instead of data; NULL: none */
  const char *drawn_noun;        /* what is drawn, as text for messages: "token ids"; a literal */
  laci_pool *pool;               /* threads that read images at the same time; NULL: images are read
                                    one after the other */
  laci_budget *budget;           /* memory that the samples hold is added to it; NULL: no limit */
} laci_samples_options;

/** Opens samples. With options->arrays, synthetic or drawn, path is only a name for messages.
 * Else path is a folder of images in any form that dataset.h supports (its training part, or its
 * evaluation part if it has no other), a .npy file (for a network with one input), a .npz file, a
 * folder of .npy files: NAME.npy for the input NAME, or a folder of .npz files, one for each
 * sample, whose sizes may differ. An additional array `labels` of integers gives the class of each
 * sample. sample_layout.h says along which axes samples are.
 *
 * Whether images fit the input is not checked here (laci_samples_dataset). Arrays: fails
 * LAC_BAD_SHAPE where one does not fit its input, with the shape found and the one needed,
 * LAC_NOT_FOUND where an input has none, LAC_BAD_ARGUMENT for arrays that belong to no input,
 * different numbers of samples, no samples, and for options about images (copies, resize, crop,
 * mean, std); and as laci_dataset_open, laci_rows_open, laci_npz_open. The pool must outlive the
 * samples; nothing else need. */
LAC_MUST_CHECK lac_status laci_samples_open(const char *path, const laci_samples_options *options,
                                            laci_samples **samples, lac_error *err);
void laci_samples_close(laci_samples *samples); /* NULL is fine */

/** Joins samples of data, at least one of them held back, with drawn (synthetic) samples of the
 * same types. First come drawn ones, perhaps not all; then the samples of the data that are worked
 * on, repeated so that they are about a third of these places; last those that are held back, and
 * the judging ones. Takes both: *data becomes the joint samples, and *drawn NULL. Fails
 * LAC_BAD_SHAPE (other types), LAC_UNSUPPORTED (constants, other axes, several shape sets),
 * LAC_BAD_VALUE (none is held back), LAC_NO_MEMORY; both are then unchanged. (samples_mixed.c) */
LAC_MUST_CHECK lac_status laci_samples_join_drawn(laci_samples **data, laci_samples **drawn,
                                                  lac_error *err);
/** Returns the number of drawn samples among joint ones (laci_samples_join_drawn); 0 for other
 * samples. */
int64_t laci_samples_count_drawn(const laci_samples *samples);
/** Returns the data's samples among joint ones (laci_samples_join_drawn), which still own them. */
laci_samples *laci_samples_of_data(const laci_samples *samples);
/** Undoes laci_samples_join_drawn: closes the drawn samples, and sets *samples to those of the
 * data. */
void laci_samples_drop_drawn(laci_samples **samples);

/** laci_samples_count returns the number of samples, copies included. laci_samples_count_held_back
 * returns how many of them, the last ones, are held back. */
int64_t laci_samples_count(const laci_samples *samples);
int64_t laci_samples_count_held_back(const laci_samples *samples);
/** Returns the number of samples for judging. They are at places [count, count + judging); none of
 * them is among the first `count` samples. */
int64_t laci_samples_count_judging(const laci_samples *samples);
/** Returns the number of samples in the data. */
int64_t laci_samples_count_available(const laci_samples *samples);
/** Returns the index in the data of the sample at a place, 0 <= place < count + judging. */
int64_t laci_samples_data_index(const laci_samples *samples, int64_t place);
/** Returns the type of an input for one sample: F32 or I64. */
const laci_type *laci_samples_type(const laci_samples *samples, int input);
/** Returns the axis of an input along which samples make a batch; -1: its content does not depend
 * on the number of samples. */
int laci_samples_batch_axis(const laci_samples *samples, int input);
/** Returns the content, as floats or int64, of an input that is the same for all samples. NULL: the
 * samples differ, or the input has an axis of samples. */
const void *laci_samples_constant(const laci_samples *samples, int input);
/** Must every batch consist of a single sample? */
bool laci_samples_need_batch_of_one(const laci_samples *samples);
/** A shape set has a shape for every input; samples of equal shapes have the same shape set, 0 ..
 * count - 1. laci_samples_count_shape_sets returns the number of shape sets, laci_samples_shape_set
 * that of the sample at a place, and laci_samples_shapes_of_set the shapes of a set, [n_inputs]. */
int laci_samples_count_shape_sets(const laci_samples *samples);
int laci_samples_shape_set(const laci_samples *samples, int64_t place);
const laci_shape *laci_samples_shapes_of_set(const laci_samples *samples, int shape_set);
/** Returns the class of each sample, [count + judging]; NULL: the data have no labels. */
const int64_t *laci_samples_labels(const laci_samples *samples);
/** Returns the data set of the images, and their preprocessing; NULL for other samples. */
const laci_dataset *laci_samples_dataset(const laci_samples *samples,
                                         laci_preprocessing *preprocessing);
/** Returns a description such as "2048 of 50000 images of DIR, 256 held back". */
const char *laci_samples_description(const laci_samples *samples);

/** Reads samples [first, first + n), all of one shape set. to[input] is a batch of the input's
 * type, with n along its axis of samples. One call at a time. Fails as laci_dataset_read_sample,
 * laci_rows_read_f32. */
LAC_MUST_CHECK lac_status laci_samples_read_batch(laci_samples *samples, int64_t first, int64_t n,
                                                  void *const *to, lac_error *err);

#endif
