/* SPDX-License-Identifier: Apache-2.0
 * Finds where the samples are in arrays for a network's inputs. There are two questions: along
 * which axis of an array the samples are, and along which axis of the input samples form a batch.
 * */
#ifndef LACI_DATA_SAMPLE_LAYOUT_H
#define LACI_DATA_SAMPLE_LAYOUT_H

#include "tensor/shape.h"

typedef struct laci_sample_input laci_sample_input;

typedef enum laci_layout_kind {
  LACI_LAYOUT_NONE,  /* the input has no array */
  LACI_LAYOUT_ROWS,  /* the array has the same axes as the input, one of which counts samples */
  LACI_LAYOUT_STACK, /* the array has one axis more than the input: its first axis counts samples,
                        each of which is a whole input */
  LACI_LAYOUT_SAME,  /* no axis of the array counts samples: the whole array is the input of every
                        sample */
} laci_layout_kind;

typedef struct laci_sample_layout {
  laci_layout_kind kind;
  int axis;       /* if kind is LACI_LAYOUT_ROWS, the axis of the array that counts samples */
  int batch_axis; /* the axis of the input along which samples form a batch; -1: none */
  laci_shape one; /* shape of the input for a batch of one sample */
} laci_sample_layout;

/** An array that may hold samples for one input of the network. */
typedef struct laci_sample_array {
  const char *name;      /* for messages */
  const laci_type *type; /* type of the array; NULL: the input has no array */
} laci_sample_array;

/** Returns the axis of the input with index `at` along which its samples form a batch. An axis is
 * open if its size is not fixed. The result is the axis with the same symbolic size as the first
 * open axis 0 of any input; if there is none, axis 0 if it is open; else the only open axis; else
 * 0. -1: the input is a single number. */
int laci_sample_find_batch_axis(const laci_sample_input *inputs, int n, int at);

/** Finds the layout of the array of each of n inputs, and the number of samples. If some arrays
 * have several samples, an array with a single sample is used for all of them. Fails LAC_BAD_SHAPE
 * for an array that does not fit its input, and for different numbers of samples. */
LAC_MUST_CHECK lac_status laci_sample_layouts_find(const laci_sample_input *inputs,
                                                   const laci_sample_array *arrays, int n,
                                                   laci_sample_layout *layouts, int64_t *n_samples,
                                                   lac_error *err);
/** Finds the layout of an array that has a single sample: it has the input's axes, or all but the
 * batch axis. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_sample_layout_find_single(const laci_sample_input *inputs, int n,
                                                         int at, const laci_sample_array *array,
                                                         laci_sample_layout *layout,
                                                         lac_error *err);

/** Copies one sample to place `at` of a batch of n samples. sample: elements in the shape
 * layout->one; element: bytes of an element. */
void laci_sample_layout_copy_to_batch(const laci_sample_layout *layout, size_t element, int64_t at,
                                      int64_t n, const void *sample, void *batch);

#endif
