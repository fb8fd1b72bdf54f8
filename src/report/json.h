/* SPDX-License-Identifier: Apache-2.0
 * What was found and done as JSON, for scripts; docs/json.md describes the fields. All of it is
 * written through base/json.h.
 *
 * *text is UTF-8, indented by two spaces, with a final newline; the caller frees it with laci_free.
 * The same values give the same bytes. Numbers that are not finite become null, names that are no
 * UTF-8 are repaired. Each fails LAC_NO_MEMORY only; *text is then NULL. Any thread. */
#ifndef LACI_REPORT_JSON_H
#define LACI_REPORT_JSON_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;
typedef struct lac_eval_result lac_eval_result;
typedef struct lac_pack_report lac_pack_report;
typedef struct lac_report lac_report;
typedef struct lac_train_about lac_train_about;
typedef struct lac_train_result lac_train_result;

LAC_MUST_CHECK lac_status laci_report_json(const lac_report *report, char **text, lac_error *err);

LAC_MUST_CHECK lac_status laci_bench_json(const lac_bench_result *result, char **text,
                                          lac_error *err);

/** model: the path that the result is of. */
LAC_MUST_CHECK lac_status laci_eval_json(const char *model, const lac_eval_result *result,
                                         char **text, lac_error *err);

LAC_MUST_CHECK lac_status laci_pack_json(const lac_pack_report *report, char **text,
                                         lac_error *err);

LAC_MUST_CHECK lac_status laci_train_json(const lac_train_about *about,
                                          const lac_train_result *result, char **text,
                                          lac_error *err);

/** run.json, which says that a folder is a training run's. */
typedef struct laci_run_mark {
  const char *started; /* when, "2024-05-01T10:00:00Z" */
  const char *network; /* a path, or a name */
  uint64_t seed;
  int64_t steps;
} laci_run_mark;

LAC_MUST_CHECK lac_status laci_run_mark_json(const laci_run_mark *mark, char **text,
                                             lac_error *err);

#endif
