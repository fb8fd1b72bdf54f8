/* SPDX-License-Identifier: Apache-2.0
 * Quantizes the weights and values of a network to int8, expressed by QuantizeLinear and
 * DequantizeLinear nodes (QDQ), or by products of integers that are made at run time (dynamic).
 *
 * Weights of Conv, ConvTranspose, Gemm and MatMul become int8, symmetric, with a scale for each
 * output channel, so that a pruned weight is the integer 0. Their biases become int32 in the scale
 * of the products. The values that these layers read, and those of nodes that runtimes fuse with
 * them, get one scale for the whole value, found on samples. Batch normalization after a
 * convolution is folded into it. Layers that cannot be quantized stay in floats, and the reason is
 * reported; so do those that lose most, if a limit is given. place.c finds layers, values.c chooses
 * values, weight.c converts weights, correct.c corrects both, write.c changes the file, mixed.c
 * keeps to the limit.
 *
 * In the dynamic form, weights of Gemm and MatMul become the same integers. A value's scale is
 * computed from the value itself when the network runs, so that no samples are needed. dynamic.c
 * chooses its layers and changes the file. */
#ifndef LACI_QUANTIZE_QUANTIZE_H
#define LACI_QUANTIZE_QUANTIZE_H

#include "base/memory.h"
#include "calibrate/ranges.h"

typedef struct laci_onnx laci_onnx;
typedef struct laci_onnx_edit laci_onnx_edit;

/** How integers are expressed in the file. */
typedef enum laci_quantize_form {
  LACI_QUANTIZE_QDQ,     /* scales of values are stored; QuantizeLinear, DequantizeLinear */
  LACI_QUANTIZE_DYNAMIC, /* scales of values are found at run time; DynamicQuantizeLinear,
                            MatMulInteger */
} laci_quantize_form;

/** A limit of what quantization may lose. */
typedef struct laci_quantize_limit {
  double most;
  /** Measures the loss of a quantized network, in the unit of `most`. */
  lac_status (*measure)(const void *context, const laci_weighted_graph *quantized, double *loss,
                        lac_error *err);
  const void *context;
} laci_quantize_limit;

typedef struct laci_quantize_options {
  laci_quantize_form form;
  laci_range_rule rule; /* of LACI_QUANTIZE_QDQ */
  bool is_signed; /* of LACI_QUANTIZE_QDQ. true: values are int8 with zero point 0; false: uint8 */
  const laci_calibration_samples *samples; /* NULL, of LACI_QUANTIZE_DYNAMIC only: outputs are not
                                              compared */
  const laci_quantize_limit *limit; /* the layers that lose most stay in floats, as many as this
                                       takes; NULL: all that can be are quantized. It needs
                                       samples */
  laci_pool *pool;
  const laci_budget *budget;
} laci_quantize_options;

/** A layer of the network, quantized or not. Its texts live as long as the quantization or its
 * graph. */
typedef struct laci_quantized_layer {
  const char *name, *op, *weight,
      *input;                   /* names of the layer, its operator, its weight and its input.
                                   weight and input are NULL if the layer has no stored weight */
  const char *reason;           /* why the layer is not quantized; NULL: it is quantized */
  bool norm_folded, bias;       /* norm_folded: true if a batch normalization was folded into the
                                   layer. bias: true if the layer has an int32 bias */
  bool weight_fitted;           /* the weight was rounded such that the outputs change least */
  bool bias_corrected;          /* the mean error of the layer's outputs went into its bias */
  double output_error_before;   /* relative error of the layer's outputs on samples held back,
                                   before corrections; 0: it was not measured */
  double output_error;          /* the same after corrections */
  double scale_low, scale_high; /* smallest and largest scale of the weight's output channels */
  double weight_error;          /* relative error of the quantized weight: sum |w - q * scale|^2 /
                                   sum |w|^2 */
  double effect;                /* error of the network's outputs if only this layer is quantized
                    (laci_worst_part_error); 0: not measured */
} laci_quantized_layer;

/** A value that is quantized. */
typedef struct laci_quantized_value {
  const char *name;
  laci_affine quantizer;
} laci_quantized_value;

typedef struct laci_quantization {
  int n_layers, n_quantized, n_values;
  int n_corrected; /* number of layers whose weight or bias was corrected */
  laci_quantized_layer *layers;
  laci_quantized_value *values;   /* [n_values] quantized values, without those that share another
                                     value's scale */
  int64_t n_fitted, n_held_back;  /* n_fitted: number of samples on which scales were found.
                                     n_held_back: number of samples kept back to judge the
                                     outputs */
  laci_output_difference outputs; /* difference between the outputs of the float network and those
                                     of the quantized one */
  const char *outputs_reason;     /* why outputs were not compared; NULL: they were compared */
  double loss;                    /* loss that options->limit measured; 0: there is no limit */
  laci_graph *graph;              /* graph of the changed file. A caller that takes it over sets
                                     NULL */
  laci_onnx_edit *edit;           /* the change of the file, to be kept or undone. A caller that
                                     takes it over sets NULL */
  laci_arena arena;
} laci_quantization;

/** Checks whether the network can be quantized in this form, whatever the samples are. Fails with
 * LAC_UNSUPPORTED if the operator set is too old, the network is quantized already, or no layer can
 * be quantized. */
LAC_MUST_CHECK lac_status laci_quantize_check(const laci_graph *graph, laci_onnx *file,
                                              laci_quantize_form form, lac_error *err);

/** Quantizes the network with the weights of `from`. On success, `file` has been changed by
 * quantization->edit, and quantization->graph is its new graph. Older graphs of the file stay valid
 * until the edit is kept. Fails as laci_quantize_check, laci_ranges_measure and limit->measure do,
 * LAC_BAD_VALUE if no layer can be quantized within the limit. */
LAC_MUST_CHECK lac_status laci_quantize(const laci_weighted_graph *from, laci_onnx *file,
                                        const laci_quantize_options *options,
                                        laci_quantization **quantization, lac_error *err);
/** Frees the quantization, and undoes its edit unless the caller took that over. quantization may
 * be NULL. */
void laci_quantization_destroy(laci_quantization *quantization);

#endif
