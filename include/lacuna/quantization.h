/* SPDX-License-Identifier: Apache-2.0
 * Quantization of a pruned network to int8 weights and activations. In QDQ form, ranges of
 * activations come from samples; ONNX Runtime, TensorRT and OpenVINO turn its QuantizeLinear and
 * DequantizeLinear nodes into integer kernels. In dynamic form, ranges are found when the network
 * runs, for which ONNX Runtime has kernels; no samples are needed.
 *
 *   lac_quantization quantization = lac_quantization_default();
 *   options.quantization = &quantization;      and options.calibration; then lac_prune
 *   quantization.format = "dynamic-int8";      without options.calibration, too
 *
 * Pruned weights become the integer 0, so that the pattern still holds exactly. After lac_prune the
 * model is the quantized network. */
#ifndef LACUNA_QUANTIZATION_H
#define LACUNA_QUANTIZATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a network is quantized. Start from lac_quantization_default(). */
typedef struct lac_quantization {
  size_t size;       /* sizeof of this struct, set by lac_quantization_init */
  const char *range; /* how the range of an activation is chosen: "percentile" (all but one in 10000
                        elements are inside), "mse" (least squared error) or "minmax" (all elements
                        are inside); default "mse" */
  bool is_signed;    /* activations are int8 with zero point 0, as TensorRT requires; false: uint8
                        with any zero point (default false) */
  const char *format; /* "qdq-int8": weights and activations of all layers with a product, ranges
                         from the calibration. "dynamic-int8": those of Gemm and MatMul, ranges found
                         at run time (DynamicQuantizeLinear, MatMulInteger), where `range` is
                         ignored and is_signed must be false. Default "qdq-int8" */
} lac_quantization;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_quantization). */
LAC_API void lac_quantization_init(lac_quantization *options, size_t size);
LAC_DEFAULT(lac_quantization)

/** A layer with a matrix product, quantized or not. Errors are sums of squared differences to the
 * float values, divided by the sum of the float values squared. */
typedef struct lac_quantized_layer {
  const char *name, *op;
  const char *weight;           /* name of the stored tensor of floats; NULL if the layer is not
                                   quantized */
  const char *input;            /* the activation whose scale is used for the layer's input; NULL if
                                   the layer is not quantized */
  const char *reason;           /* why the layer stays in floats; NULL: it is quantized */
  bool norm_folded;             /* the batch normalization after the layer was folded into its
                                   weight */
  bool bias;                    /* the layer has an int32 bias */
  double scale_low, scale_high; /* smallest and largest scale of the weight's channels */
  double weight_error;          /* relative error of rounding the weight */
} lac_quantized_layer;

/** How a quantized layer was corrected on samples. Errors are those of its outputs on samples held
 * back, relative to the network in floats; both are 0 if they were not measured. */
typedef struct lac_quantized_correction {
  bool weight; /* the weight was rounded such that the layer's outputs change least, and not each
                  element to the nearest integer */
  bool bias; /* the mean error of each output channel went into the layer's bias, or into the vector
                that is added after it */
  double error_before, error_after; /* error of the outputs before and after the corrections */
} lac_quantized_correction;

/** An activation for which a scale was determined. */
typedef struct lac_quantized_value {
  const char *name;
  double low, high; /* range of its values in the samples; includes 0 */
  double scale;     /* the size of one integer step */
  int zero_point;   /* the integer that stands for 0 */
  double error;     /* estimated error of rounding and clipping the activation */
} lac_quantized_value;

/** What quantization did; part of a report. */
typedef struct lac_quantization_result {
  const char *format;              /* format of the quantized network: "qdq-int8" or
                                      "dynamic-int8" */
  const char *range, *activations; /* how ranges were chosen, such as "mse", NULL: at run time;
                                      type of activations: "uint8" or "int8" */
  int64_t samples, held_back;      /* number of samples for ranges, or without ranges for the fit;
                                      number of held-back samples on which outputs were compared (0:
                                      they were compared on the others) */
  int n_layers, n_quantized, n_values;
  const lac_quantized_layer *layers; /* [n_layers] layers with a matrix product */
  const lac_quantized_value *values; /* [n_values] activations that have a stored scale */
  double outputs_error; /* relative error of the network's outputs, quantized against float, both
                           pruned: sum |floats - integers|^2 / sum |floats|^2 */
  int64_t answers;      /* number of predictions: rows of the first output, of which the largest
                           element was compared; 0: not compared */
  double agreement;     /* percent of the answers in which the same element is the largest */
  int64_t labelled;     /* samples with a label for the outputs; 0: top-1 is not known */
  double top1_floats, top1_integers; /* top-1 of the pruned network before and after quantization,
                                        percent of the labelled samples */
  const char *outputs_reason;        /* why outputs were not compared; NULL: they were */
  double agreement_least; /* lower bound of agreement, percent, with 95 % confidence; 0: not known,
                             see lac_calibration_result */
  int n_corrected;        /* number of layers that were corrected */
  const lac_quantized_correction *corrections; /* [n_layers] the corrections of the layers */
} lac_quantization_result;

#ifdef __cplusplus
}
#endif
#endif
