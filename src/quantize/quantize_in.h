/* SPDX-License-Identifier: Apache-2.0
 * The state of a quantization: which layers and values are quantized. Private to src/quantize. */
#ifndef LACI_QUANTIZE_QUANTIZE_IN_H
#define LACI_QUANTIZE_QUANTIZE_IN_H

#include "graph/graph.h"
#include "quantize/quantize.h"

enum {
  LACI_QUANTIZE_OPSET = 13,            /* the first opset with a scale for each channel */
  LACI_QUANTIZE_DYNAMIC_OPSET = 11,    /* the first opset with DynamicQuantizeLinear */
  LACI_QUANTIZE_COMPARE_ALL = 1 << 30, /* for laci_quantize_trial.most_compared: no limit */
};

/** A layer that can perhaps be quantized. */
typedef struct laci_quantize_layer {
  int node;
  int port, other;    /* port: index of the node's input that is the weight. other: index of its
                         input that is the data */
  int k_axis;         /* number of the weight's axis that has its output channels */
  int bias;           /* index of the value that is the layer's stored bias; -1: there is no bias to
                         quantize */
  int norm;           /* index of the batch normalization node that is folded into the layer; -1:
                         there is none */
  int add;            /* index of the Add node that alone reads a MatMul and adds a stored vector to
                         it; -1: there is none */
  int add_port;       /* index of that node's input that is the vector */
  const char *reason; /* why the layer stays in floats; NULL: it is quantized */
} laci_quantize_layer;

/** What replaces the rounded constants of a layer (correct.c). */
typedef struct laci_quantize_correction {
  int8_t *weight; /* integers of the weight, in its layout; NULL: the nearest ones are taken */
  int64_t n;      /* number of output channels */
  int32_t *bias;  /* [n] integers of the bias; NULL: the layer has its own, or none */
  float *added;   /* [n] the vector that layer->add adds; NULL: its own */
  double error_before, error_after; /* relative error of the layer's outputs on samples held back,
                                       before and after the correction; 0: not measured */
} laci_quantize_correction;

typedef struct laci_quantize_corrections {
  int n_layers;
  laci_quantize_correction *layers; /* [n_layers] in the order of laci_quantize_find_layers */
} laci_quantize_corrections;

/** What an earlier quantization of the same network found, and which layers are left out now. */
typedef struct laci_quantize_trial {
  const laci_affine *quantizers; /* [n_values] scales that were found; NULL: they are measured */
  laci_affine *found;            /* [n_values] where the scale of each quantized value is stored;
                                    NULL: nowhere */
  const bool *in_floats;         /* [n_layers] layers that stay in floats, in the order of
                                    laci_quantize_find_layers; NULL: none */
  laci_output_cache *cache;      /* outputs of the float network; NULL: there is no cache */
  int64_t most_compared;         /* limit of the samples on which outputs are compared; 0: they are
                                    not compared */
  laci_quantize_corrections *find;      /* where the corrections are stored that the quantized
                                           network needs. Layers without a bias get one of zeros,
                                           if they can; NULL: none are looked for */
  bool only_biases;                     /* weights are not corrected */
  const laci_quantize_corrections *use; /* corrections that are made; NULL: none */
} laci_quantize_trial;

typedef struct laci_quantizing {
  const laci_graph *graph;
  const uint8_t *const *weights; /* [n_stored] for each stored tensor, bytes that replace the
                                    graph's; NULL: the graph's are used */
  laci_onnx_edit *edit;
  laci_quantize_form form;
  const laci_quantize_options *how;
  const laci_quantize_trial *trial;
  laci_quantization *out;
  laci_quantize_layer *layers; /* [n_layers] the layers that may be quantized */
  int n_layers;
  bool *wanted;  /* [n_values] true: the value is to be quantized */
  bool *for_all; /* [n_values] true: every reader of the value reads it dequantized, since it is the
                    result of a fused node */
  int *like;     /* [n_values] index of the value whose scale each value uses; -1: it has a scale of
                    its own */
  bool *reads;   /* [n_nodes] true: the node reads its quantized inputs after they are
                    dequantized */
  laci_affine *quantizers; /* [n_values] scale and zero point of each value that is quantized */
} laci_quantizing;

/* ---- Functions of quantize.c ---- */

/** Quantizes the network as laci_quantize does without a limit. */
LAC_MUST_CHECK lac_status laci_quantize_once(const laci_weighted_graph *from, laci_onnx *file,
                                             const laci_quantize_options *options,
                                             const laci_quantize_trial *trial,
                                             laci_quantization **quantization, lac_error *err);
/** Lists the bytes of the new graph's weights: those of `from` for a tensor of the same name; NULL:
 * the graph's own. The caller frees the list. NULL: there is no memory. */
const uint8_t **laci_quantize_match_weights(const laci_weighted_graph *from,
                                            const laci_graph *graph);

/* ---- Functions of correct.c ---- */

/** Can the layer's integers have a bias, though it has none in floats? */
bool laci_quantize_may_add_bias(const laci_quantizing *q, const laci_quantize_layer *layer);
/** Finds the corrections of q's layers, in q->trial->find, by running the float network `from` and
 * the quantized one, q->out->graph, over the samples. Layers that cannot be corrected have none. */
LAC_MUST_CHECK lac_status laci_quantize_find_corrections(laci_quantizing *q,
                                                         const laci_weighted_graph *from,
                                                         const laci_calibration_cut *cut,
                                                         lac_error *err);
void laci_quantize_corrections_clear(laci_quantize_corrections *corrections); /* zeroed is fine */
/** Quantizes the network as laci_quantize_once does, with the corrections that it needs. If these
 * make its outputs worse on samples held back, it has none. In the dynamic form it has none either:
 * biases stay in floats, and ranges cut nothing off. trial->find and use are not read. */
LAC_MUST_CHECK lac_status laci_quantize_corrected(const laci_weighted_graph *from, laci_onnx *file,
                                                  const laci_quantize_options *options,
                                                  const laci_quantize_trial *trial,
                                                  laci_quantization **quantization, lac_error *err);

/* ---- Functions of mixed.c ---- */

/** Quantizes as many layers as options->limit allows. Fails as laci_quantize. */
LAC_MUST_CHECK lac_status laci_quantize_within_limit(const laci_weighted_graph *from,
                                                     laci_onnx *file,
                                                     const laci_quantize_options *options,
                                                     laci_quantization **quantization,
                                                     lac_error *err);

/* ---- Functions of place.c ---- */

/** Is the node of one of these types, whose list ends with NULL? */
bool laci_quantize_is_type_in_list(const laci_node *node, const char *const *names);
/** Is the node one of the file's main graph? */
bool laci_quantize_is_node_in_file(const laci_quantizing *q, int node);
/** Does the value consist of floats, and is it computed or a network input? Then nodes can be added
 * after it. */
bool laci_quantize_is_quantizable(const laci_quantizing *q, int value);
/** Is the value a stored tensor of floats, which no network input replaces? */
bool laci_quantize_is_stored_constant(const laci_quantizing *q, int value);
/** Returns the only node that reads a value. -1: no node or several nodes read it, or it is a
 * network output. */
int laci_quantize_find_only_reader(const laci_quantizing *q, int value);
/** Lists the layers that may be quantized in q->layers. */
void laci_quantize_find_layers(laci_quantizing *q);
/** If no layer can be quantized, returns the reason of the first layer; else NULL. */
const char *laci_quantize_explain_no_layer(const laci_quantizing *q);
/** Returns the number of output channels of a layer, those of all convolution groups together. */
int64_t laci_quantize_count_channels(const laci_quantizing *q, const laci_quantize_layer *layer);
/** Call it after the ranges are measured. A layer whose input data have no scale gets a reason to
 * stay in floats. */
void laci_quantize_exclude_layers_without_scale(laci_quantizing *q);
/** Returns the name of an output, by which functions of onnx/edit.h identify a node: that of its
 * first output, or of the batch normalization that is folded into it. */
const char *laci_quantize_edit_name_of_node(const laci_quantizing *q, int node);
/** Returns the value whose scale `value` uses, which may be `value` itself. */
int laci_quantize_find_scale_owner(const laci_quantizing *q, int value);

/* ---- Functions of values.c ---- */

/** Chooses the values that are quantized: fills q->wanted, q->for_all, q->like and q->reads. */
LAC_MUST_CHECK lac_status laci_quantize_mark_values(laci_quantizing *q, lac_error *err);

/* ---- Functions of weight.c ---- */

/** The integers of a layer's weight and bias, with their scales. */
typedef struct laci_quantized_weight {
  int64_t n_channels, n_bias;
  int8_t *weight;     /* integers of the weight, in the weight's layout */
  float *scales;      /* [n_channels] scale of each output channel of the weight */
  int32_t *bias;      /* [n_bias] integers of the bias; NULL: there is no bias */
  float *bias_scales; /* [n_bias] scale of each element of the bias */
} laci_quantized_weight;

/** Quantizes a layer's weight and bias. Fails with LAC_BAD_VALUE if an element is not finite. The
 * caller clears *weight in any case. */
LAC_MUST_CHECK lac_status laci_quantize_weight(const laci_quantizing *q,
                                               const laci_quantize_layer *layer,
                                               laci_quantized_layer *report,
                                               laci_quantized_weight *weight, lac_error *err);
/** Computes the layer's weights, after a folded normalization, in units of their channels' scales
 * (laci_quantized_weight.scales). The caller frees *scaled, in the weight's layout. */
LAC_MUST_CHECK lac_status laci_quantize_scale_weight(const laci_quantizing *q,
                                                     const laci_quantize_layer *layer,
                                                     const float *scales, double **scaled,
                                                     lac_error *err);
void laci_quantized_weight_clear(laci_quantized_weight *weight);

/* ---- Functions of write.c ---- */

/** Adds all changes of the quantization to the edit of the file, q->edit. */
LAC_MUST_CHECK lac_status laci_quantize_write(laci_quantizing *q, lac_error *err);

/* ---- Functions of dynamic.c, for LACI_QUANTIZE_DYNAMIC ---- */

/** Returns why the layer, which has a stored weight, is not computed from integers that are made at
 * run time; NULL: it is. */
const char *laci_quantize_explain_no_dynamic(const laci_quantizing *q,
                                             const laci_quantize_layer *layer);
/** Fills q->like and q->quantizers: no value shares a scale, and scales are known at run time
 * only. */
void laci_quantize_set_dynamic_values(laci_quantizing *q);
/** Adds all changes of the quantization to the edit of the file, q->edit. */
LAC_MUST_CHECK lac_status laci_quantize_write_dynamic(laci_quantizing *q, lac_error *err);

/* ---- Functions of opset.c ---- */

/** Fails with LAC_UNSUPPORTED if the network's opset has no operators of the form, and cannot be
 * converted to LACI_QUANTIZE_OPSET. */
LAC_MUST_CHECK lac_status laci_quantize_check_opset(const laci_graph *graph,
                                                    laci_quantize_form form, lac_error *err);
/** If the network has an older opset, adds the changes that convert it to LACI_QUANTIZE_OPSET to
 * the edit of the file. */
LAC_MUST_CHECK lac_status laci_quantize_raise_opset(laci_quantizing *q, lac_error *err);

#endif
