/* SPDX-License-Identifier: Apache-2.0
 * The state of corrections: correct.c runs the networks, round.c rounds weights. */
#ifndef LACI_QUANTIZE_CORRECT_IN_H
#define LACI_QUANTIZE_CORRECT_IN_H

#include "calibrate/sequence.h"
#include "quantize/quantize_in.h"

/** A layer that can be corrected. */
typedef struct laci_correct_site {
  int layer;         /* index of the layer in q->layers */
  int output, input; /* output: value of the float network that has the layer's outputs with its
                        bias. input: value of the quantized network that the layer reads */
  int float_input;   /* value of the float network that the layer reads */
  int quantized;     /* the value `output` in the quantized network */
  int weight;        /* index among the quantized network's stored tensors of the integer weight */
  const float *weight_scales; /* scales of the weight's channels */
  int bias; /* index of the stored bias, or of the vector that is added; -1: there is none */
  const float *scales; /* [n] scales of the bias; NULL: it is the vector, in floats */
  int axis;            /* axis of the output that has the channels */
  int64_t n;           /* number of channels */
} laci_correct_site;

typedef struct laci_correcting {
  laci_quantizing *q;
  const laci_graph *graph; /* the quantized network's graph */
  laci_correct_site *sites;
  int n_sites;
  int64_t *firsts; /* [n_batches] first sample of each batch; the first n_fitted are for the fits,
                      the others are held back */
  int64_t batch, n_batches, n_fitted;
  laci_sequence *floats, *integers;
} laci_correcting;

/** The stops of c->floats: for each site the layer's input, then its output. */
static inline int laci_correct_input_stop(int site) { return 2 * site; }
static inline int laci_correct_output_stop(int site) { return 2 * site + 1; }

/** Finds integers of a site's weight that fit the inputs that the layer has at the last stop of
 * c->integers. output: shape of its outputs in a batch. *fitted is NULL if it has none, which is
 * logged; else the caller frees it. */
LAC_MUST_CHECK lac_status laci_correct_round_weight(const laci_correcting *c, int site,
                                                    const laci_shape *output, int8_t **fitted,
                                                    lac_error *err);

#endif
