/* SPDX-License-Identifier: Apache-2.0
 * How good a classifier is: a network run over labelled images by the fast engine (engine.h).
 *
 * The data are found out from the folder: CIFAR-10 and CIFAR-100 in their binary form, or a folder
 * of images, CLASS/NAME.jpg. docs/data.md says how classes are numbered and images prepared.
 *
 * Threads. Several threads may evaluate one model at the same time (model.h). */
#ifndef LACUNA_EVAL_H
#define LACUNA_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "lacuna/report.h" /* lac_text_free */
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a network is evaluated, and on what. */
typedef struct lac_eval_options {
  int threads;     /* 0 (default): the cores this process may use */
  lac_dtype dtype; /* LAC_DTYPE_F32 (default) or LAC_DTYPE_BF16, see lac_engine_options */
  int batch;       /* images a run, 1 .. 65536, default 64; where the network's own batch is fixed,
                      that is taken instead */
  int64_t limit;   /* only the first so many images; 0 (default): all */
  int resize;      /* shorter side after resizing, pixels; 0 (default): 256, CIFAR as it is */
  int crop;      /* side of the square cut out of the middle, pixels; 0 (default): 224, CIFAR 32 */
  float mean[3]; /* of red, green, blue, in grey levels 0..255; default ImageNet's */
  float std[3];  /* > 0; default ImageNet's: an input is (grey - mean) / std */
  const char *classes;     /* file with the names of class folders in the order of the network's
                              outputs, of the first of them at least; NULL (default): ImageNet's, or
                              the folders' own order */
  const char *predictions; /* where to write the first output, [images, classes] in the order of
                              the data, as .npy; NULL (default): nowhere */
  bool force;              /* replace a file of that name */
  uint64_t max_memory;     /* bytes that the work may take, as planned; 0 (default): 80 % of the
                              machine's, or of its control group's */
  const char *engine;      /* see lac_engine_options; NULL (default): "auto" */
  bool dense_only;         /* see lac_engine_options; default false */
  lac_tuning tuning;       /* see lac_engine_options; default LAC_TUNING_OFF */
  const char *timings;     /* the same; default NULL */
} lac_eval_options;

/** What lac_eval counted. */
typedef struct lac_eval_result {
  int64_t images;
  double top1, top5;        /* percent; of equal logits the lower class comes first */
  double loss;              /* mean softmax cross entropy */
  double images_per_second; /* from file to result, without planning */
  int n_sparse;             /* steps of the plan that ran by sparse kernels */
  lac_dtype dtype;          /* that was computed in */
  int n_nodes, n_exact;     /* see lac_engine_facts */
  char exact_reason[256];   /* the same; "": there is none */
} lac_eval_result;

/** Every field's default, which its line names. */
LAC_API lac_eval_options lac_eval_options_default(void);

/** Evaluates the model, whose only input must be [N, 3, H, W] and whose first output [N, classes],
 * on the images of the folder `data`, or of its part "val", "validation" or "test", where it has
 * parts. The last batch is filled up with zeros. Reports its progress as "evaluate". Fails
 * LAC_BAD_SHAPE for another network, and for data with more or fewer classes than it has outputs,
 * unless `classes` names the first of these, LAC_BAD_ARGUMENT for options outside their limits,
 * LAC_BAD_VALUE where images have a NaN among their logits, saying how many, LAC_EXISTS,
 * LAC_INTERRUPTED, as lac_engine_create does, and for what is wrong with the data (LAC_NOT_FOUND,
 * LAC_BAD_FILE, LAC_IO). Then *result is zero and no file of predictions is there. */
LAC_API LAC_MUST_CHECK lac_status lac_eval(const lac_model *model, const char *data,
                                           const lac_eval_options *options, lac_eval_result *result,
                                           lac_error *err);

/** The result as JSON text (UTF-8, two-space indent, final newline), see docs/json.md; free with
 * lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_eval_json(const lac_model *model,
                                                const lac_eval_result *result, char **text,
                                                lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
