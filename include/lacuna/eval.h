/* SPDX-License-Identifier: Apache-2.0
 * Evaluation of a classifier: the accuracy of a network on labelled images, computed with an engine
 * (engine.h).
 *
 * The format of the data is detected from the folder. The formats, how classes are numbered and how
 * images are prepared are in docs/reference/data.md.
 *
 * Threads. Several threads may evaluate one model at the same time (model.h). */
#ifndef LACUNA_EVAL_H
#define LACUNA_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/run.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_model lac_model;     /* lacuna/model.h */
typedef struct lac_samples lac_samples; /* lacuna/array.h */

/** How a network is evaluated, and on what. */
typedef struct lac_eval_options {
  size_t size;         /* sizeof of this struct, set by lac_eval_options_init */
  lac_run_options run; /* how the network is run, see run.h */
  int batch;     /* images per run, 1 .. 65536, default 64; ignored if the network's batch size is
                      fixed */
  int64_t limit; /* maximum number of images, from the first one on; 0 (default): all */
  int resize;    /* shorter side after resizing, pixels; 0 (default): 256; CIFAR: no resizing */
  int crop;      /* side of the square cut out of the middle, pixels; 0 (default): 224; CIFAR: 32 */
  float mean[3]; /* mean of red, green and blue, in grey levels 0..255; default ImageNet's */
  float std[3];  /* standard deviation of red, green and blue, > 0; default ImageNet's: an input is
                    (grey - mean) / std */
  const char *classes;     /* file with the names of the class folders in the order of the network's
                              outputs, or of its first outputs; NULL (default): ImageNet's order, or
                              the order of the folders */
  const char *predictions; /* .npy file to which the first output, [images, classes] in the order of
                              the data, is written; NULL (default): none */
  bool force;              /* replace an existing file `predictions` */
  /** Samples in memory, instead of the argument `data`, which is NULL then: an array with the name
   * of the network's input, and `labels`. Floats [N, ...] are what the network reads, and are not
   * prepared. Bytes (LAC_DTYPE_U8) are images, [N, C, H, W] or [N, H, W, C], with 1 or 3 channels.
   * They are prepared as those of CIFAR, at their size; grey ones are divided by 255. NULL
   * (default): none */
  const lac_samples *from_memory;
} lac_eval_options;

/** The result of lac_eval. */
typedef struct lac_eval_result {
  size_t size;              /* sizeof of this struct, set by LAC_SIZED */
  int64_t images;           /* number of images that were evaluated */
  double top1, top5;        /* accuracies in percent; among equal logits the lower class ranks first
                               */
  double loss;              /* mean softmax cross entropy */
  double images_per_second; /* images per second, with reading and preparing them, without planning
                               */
  int n_sparse;             /* number of steps of the plan that used sparse kernels */
  lac_dtype dtype;          /* type of the computation */
  int n_nodes, n_exact;     /* see lac_engine_facts */
  char exact_reason[256];   /* see lac_engine_facts; "": there is no such node */
} lac_eval_result;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_eval_options). */
LAC_API void lac_eval_options_init(lac_eval_options *options, size_t size);
LAC_DEFAULT(lac_eval_options)

/** Evaluates the model on the images of the folder `data`, or of its subfolder "val", "validation"
 * or "test" if there is one. `data` may also be arrays: a .npz, or a folder of .npy with
 * labels.npy. If it is NULL, options->from_memory has the samples. The model's only input must have
 * the shape [N, 3, H, W], or that of the arrays, and its first output [N, classes]. The last batch
 * is filled up with zeros. Reports progress as "evaluate". Fails LAC_BAD_SHAPE for another network.
 * Also fails LAC_BAD_SHAPE if the data's number of classes is not the number of outputs, unless
 * options->classes names the first outputs. Fails LAC_BAD_ARGUMENT for options outside their
 * limits, and LAC_BAD_VALUE if images have NaN logits (the text says how many). Fails
 * LAC_NOT_FOUND, LAC_BAD_FILE or LAC_IO for bad data, LAC_EXISTS, LAC_INTERRUPTED, and as
 * lac_engine_create does. On failure *result is zero and no file of predictions is written. */
LAC_API LAC_MUST_CHECK lac_status lac_eval(const lac_model *model, const char *data,
                                           const lac_eval_options *options, lac_eval_result *result,
                                           lac_error *err);

/** Sets *text to the result as JSON text (UTF-8, two-space indent, final newline), see
 * docs/reference/json.md. Free it with lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_eval_json(const lac_model *model,
                                                const lac_eval_result *result, char **text,
                                                lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
