/* SPDX-License-Identifier: Apache-2.0
 * Writes reports and results as JSON, for scripts. docs/reference/json.md describes the fields.
 * Everything is written with base/json.h.
 *
 * *text is UTF-8, indented by two spaces, with a final newline; the caller frees it with laci_free.
 * The same values give the same bytes. Numbers that are not finite become null; invalid UTF-8 in
 * names is replaced. The functions fail only with LAC_NO_MEMORY; *text is then NULL. Any thread may
 * call them. */
#ifndef LACI_REPORT_JSON_H
#define LACI_REPORT_JSON_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;
typedef struct lac_compare_result lac_compare_result;
typedef struct lac_eval_result lac_eval_result;
typedef struct lac_file_tensor lac_file_tensor;
typedef struct lac_pack_report lac_pack_report;
typedef struct lac_report lac_report;
typedef struct lac_train_about lac_train_about;
typedef struct lac_train_result lac_train_result;

LAC_MUST_CHECK lac_status laci_report_json(const lac_report *report, char **text, lac_error *err);

LAC_MUST_CHECK lac_status laci_compare_json(const lac_compare_result *result, char **text,
                                            lac_error *err);

LAC_MUST_CHECK lac_status laci_bench_json(const lac_bench_result *result, char **text,
                                          lac_error *err);

/** Writes the result of lac_eval as JSON. model: path of the evaluated model. */
LAC_MUST_CHECK lac_status laci_eval_json(const char *model, const lac_eval_result *result,
                                         char **text, lac_error *err);

LAC_MUST_CHECK lac_status laci_pack_json(const lac_pack_report *report, char **text,
                                         lac_error *err);

/** The measured tensors of a file that has tensors but no network. */
typedef struct laci_tensor_list {
  const char *path;
  int n, m; /* numbers of the pattern N:M */
  const lac_file_tensor *tensors;
  int count;
} laci_tensor_list;

LAC_MUST_CHECK lac_status laci_tensor_file_json(const laci_tensor_list *list, char **text,
                                                lac_error *err);

LAC_MUST_CHECK lac_status laci_train_json(const lac_train_about *about,
                                          const lac_train_result *result, char **text,
                                          lac_error *err);

/** The contents of run.json, a file that marks a folder as that of a training run. */
typedef struct laci_run_mark {
  const char *started; /* time at which the run started, such as "2024-05-01T10:00:00Z" */
  const char *network; /* path of the network's file, or name of the network */
  uint64_t seed;
  int64_t steps;
  const char *options; /* the training's options, as members of a JSON object, in the form that
                          checkpoints have */
  const char *processor, *instructions, *system, *compiler; /* processor, instruction set, operating
                                                               system and compiler with which the
                                                               training runs */
  int threads, processes;
  const char *format; /* format of the data */
  int64_t images, test_images;
  int classes;
  uint64_t data_hash; /* hash of all labels and some images */
} laci_run_mark;

LAC_MUST_CHECK lac_status laci_run_mark_json(const laci_run_mark *mark, char **text,
                                             lac_error *err);

#endif
