/* SPDX-License-Identifier: Apache-2.0
 * A pruned network with int8 weights and activations, as QuantizeLinear and DequantizeLinear say it
 * (QDQ): what ONNX Runtime, TensorRT and OpenVINO make integer kernels of.
 *
 *   lac_quantization quantization = lac_quantization_default();
 *   options.quantization = &quantization;      and options.calibration; then lac_prune
 *
 * Pruned weights are the integer 0, so that the pattern is exact. The model is the quantized one
 * when lac_prune has returned. */
#ifndef LACUNA_QUANTIZATION_H
#define LACUNA_QUANTIZATION_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Start from lac_quantization_default(). */
typedef struct lac_quantization {
  const char *range; /* where the range of an activation is cut: "percentile" (all but one in 10000
                        elements inside), "mse" (the least squared error) or "minmax" (nowhere)
                        ("mse") */
  bool is_signed;    /* activations are int8 about zero 0, which TensorRT wants; else uint8 with a
                        zero point (false) */
} lac_quantization;

/** Every field's default, which its line names. */
LAC_API lac_quantization lac_quantization_default(void);

/** A layer with a product, quantized or not. Errors are sums of squares, relative to those of the
 * floats. */
typedef struct lac_quantized_layer {
  const char *name, *op;
  const char *weight;           /* stored tensor of floats; NULL where it is not quantized */
  const char *input;            /* the activation whose scale its data have; NULL as above */
  const char *reason;           /* why it stays in floats; NULL: it is quantized */
  bool norm_folded;             /* batch normalization after it went into it */
  bool bias;                    /* it has an int32 bias */
  double scale_low, scale_high; /* of the weight, least and largest over its channels */
  double weight_error;
} lac_quantized_layer;

/** An activation with a scale of its own. */
typedef struct lac_quantized_value {
  const char *name;
  double low, high; /* as they were met in the samples, 0 among them */
  double scale;
  int zero_point;
  double error; /* of rounding and cutting, estimated */
} lac_quantized_value;

/** What quantization did; part of a report. */
typedef struct lac_quantization_result {
  const char *format;              /* "qdq-int8" */
  const char *range, *activations; /* "mse"; "uint8" or "int8" */
  int64_t samples, held_back;      /* that ranges were found on; that outputs were compared on (0:
                                      the same ones) */
  int n_layers, n_quantized, n_values;
  const lac_quantized_layer *layers; /* [n_layers] */
  const lac_quantized_value *values; /* [n_values] */
  double
      outputs_error; /* of the outputs: sum |floats - integers|^2 / sum |floats|^2, both pruned */
  int64_t answers;   /* rows of the first output in which a largest element was looked for; 0:
                        none */
  double agreement;  /* percent of these with the same largest element */
  int64_t labelled;  /* samples with a label for the outputs; 0: top-1 is not known */
  double top1_floats, top1_integers; /* percent of these */
  const char *outputs_reason;        /* why outputs were not compared; NULL: they were */
  double agreement_least; /* percent, with 95 % confidence; 0: not known, as in a calibration */
} lac_quantization_result;

#ifdef __cplusplus
}
#endif
#endif
