/* SPDX-License-Identifier: Apache-2.0
 * A network with weights and values in int8, as QuantizeLinear and DequantizeLinear (QDQ) say it.
 *
 * Weights of Conv, ConvTranspose, Gemm and MatMul become int8, symmetric, with a scale for each
 * output channel, so that a pruned weight is the integer 0; their biases int32 of the scale of the
 * products; and what they read and what runtimes fuse around them gets a scale for the whole value,
 * found on samples. Batch normalization after a convolution is folded into it. What cannot be
 * quantized stays in floats, with a reason. place.c says where, weight.c how, write.c puts it into
 * the file. */
#ifndef LACI_QUANTIZE_QUANTIZE_H
#define LACI_QUANTIZE_QUANTIZE_H

#include "base/memory.h"
#include "calibrate/ranges.h"

typedef struct laci_onnx laci_onnx;
typedef struct laci_onnx_edit laci_onnx_edit;

typedef struct laci_quantize_options {
  laci_range_rule rule;
  bool is_signed; /* values are int8 about zero 0, else uint8 */
  const laci_calibration_samples *samples;
  laci_pool *pool;
  const laci_budget *budget;
} laci_quantize_options;

/** A layer, quantized or not. Texts live as long as the quantization or its graph. */
typedef struct laci_quantized_layer {
  const char *name, *op, *weight,
      *input;                   /* weight and input: NULL where it has none that is stored */
  const char *reason;           /* why it is not; NULL: it is */
  bool norm_folded, bias;       /* batch normalization went into it; it has an int32 bias */
  double scale_low, scale_high; /* of the weight, over its channels */
  double weight_error;          /* sum |w - q * scale|^2 / sum |w|^2 */
} laci_quantized_layer;

/** A value that is put into integers. */
typedef struct laci_quantized_value {
  const char *name;
  double low, high; /* as they were met */
  laci_affine quantizer;
} laci_quantized_value;

typedef struct laci_quantization {
  int n_layers, n_quantized, n_values;
  laci_quantized_layer *layers;
  laci_quantized_value *values;   /* those with scales of their own */
  int64_t n_fitted, n_held_back;  /* samples */
  laci_output_difference outputs; /* of the network with floats and with integers */
  const char *outputs_reason;     /* why these were not compared; NULL: they were */
  laci_graph *graph;              /* of the file as it is now; the caller's to take (NULL then) */
  laci_onnx_edit *edit;           /* that made it so: to be kept, or undone; the caller's to take */
  laci_arena arena;
} laci_quantization;

/** Is there anything that speaks against it, whatever the samples are? Fails LAC_UNSUPPORTED (an
 * operator set that is too old, a network that is quantized already, no layer that could be). */
LAC_MUST_CHECK lac_status laci_quantize_check(const laci_graph *graph, laci_onnx *file,
                                              lac_error *err);

/** Quantizes the network with these weights. On success the file is changed, as `edit` says, and
 * `graph` is what it holds; graphs from before stay valid until the edit is kept. Fails as
 * laci_quantize_check and laci_ranges_measure do. */
LAC_MUST_CHECK lac_status laci_quantize(const laci_weighted_graph *from, laci_onnx *file,
                                        const laci_quantize_options *options,
                                        laci_quantization **quantization, lac_error *err);
/** Undoes an edit that was not taken. NULL is fine. */
void laci_quantization_destroy(laci_quantization *quantization);

#endif
