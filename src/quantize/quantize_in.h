/* SPDX-License-Identifier: Apache-2.0
 * A quantization being made: which layers, which values. Private to quantize. */
#ifndef LACI_QUANTIZE_QUANTIZE_IN_H
#define LACI_QUANTIZE_QUANTIZE_IN_H

#include "graph/graph.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize.h"

enum { LACI_QUANTIZE_OPSET = 13 }; /* the first with a scale for each channel */

/** A layer that could be quantized. */
typedef struct laci_quantize_layer {
  int node;
  int port, other;    /* input with the weight, and with the data */
  int k_axis;         /* of the weight */
  int bias;           /* value of a stored bias; -1: none that is quantized */
  int norm;           /* node of batch normalization that is folded into it; -1: none */
  const char *reason; /* why it stays in floats; NULL: it does not */
} laci_quantize_layer;

typedef struct laci_quantizing {
  const laci_graph *graph;
  const uint8_t *const *weights; /* in the place of the graph's; NULL: none are */
  laci_onnx_edit *edit;
  const laci_quantize_options *how;
  laci_quantization *out;
  laci_quantize_layer *layers; /* [n_layers] */
  int n_layers;
  bool *wanted;  /* [n_values] gets integers */
  bool *for_all; /* [n_values] whoever reads it reads the integers: a fused node ends there */
  int *like;     /* [n_values] the value whose scale it has; -1: one of its own */
  bool *reads;   /* [n_nodes] reads integers where there are any */
  laci_affine *quantizers; /* [n_values] */
} laci_quantizing;

/* place.c */

/** Fills layers. */
void laci_quantize_find_layers(laci_quantizing *q);
/** Fills wanted, for_all, like, reads; scratch: [n_values]. */
void laci_quantize_want(laci_quantizing *q, bool *scratch);
/** Can none of the layers be quantized? Their first reason, else NULL. */
const char *laci_quantize_nothing(const laci_quantizing *q);
/** Layers whose data has no scale stay in floats, after the ranges were measured. */
void laci_quantize_resolve(laci_quantizing *q);
/** The value that names a node in the file: its first output, or that of the norm in it. */
const char *laci_quantize_node_name(const laci_quantizing *q, int node);
/** The value whose scale a value has. */
int laci_quantize_scale_of(const laci_quantizing *q, int value);

/* weight.c */

/** Integers of a layer: of the weight and its scales, and of the bias with theirs. */
typedef struct laci_quantized_weight {
  int64_t n_channels, n_bias;
  int8_t *weight;     /* as many as the weight has elements */
  float *scales;      /* [n_channels] */
  int32_t *bias;      /* [n_bias]; NULL: none */
  float *bias_scales; /* [n_bias] */
} laci_quantized_weight;

/** Fails LAC_BAD_VALUE for what is not finite. Clear it in any case. */
LAC_MUST_CHECK lac_status laci_quantize_weight(const laci_quantizing *q,
                                               const laci_quantize_layer *layer,
                                               laci_quantized_layer *report,
                                               laci_quantized_weight *weight, lac_error *err);
void laci_quantized_weight_clear(laci_quantized_weight *weight);

/* write.c */

/** Puts all of it into the edit. */
LAC_MUST_CHECK lac_status laci_quantize_write(laci_quantizing *q, lac_error *err);

#endif
