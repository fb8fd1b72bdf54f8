/* SPDX-License-Identifier: Apache-2.0
 * The first steps of lac_prune, lac_permute, lac_check and lac_inspect: checks options, infers
 * shapes, analyzes the network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/model/structs.h"
#include "api/model/model_in.h"
#include "api/prune/calibration_in.h"
#include "api/prune/job_in.h"
#include "api/prune/rule_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/assume.h"
#include "graph/infer.h"
#include "lacuna/prune.h"
#include "permute/search.h"
#include "verify/verify.h"

/* Checks that a list has `n` texts that are not NULL. */
static lac_status check_text_list(const char *name, const char *const *list, int n,
                                  lac_error *err) {
  if (n < 0) return laci_fail(err, LAC_BAD_ARGUMENT, "n_%s is %d, wanted 0 or more", name, n);
  if (n > 0 && !list)
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s is NULL, but n_%s is %d", name, name, n);
  for (int at = 0; at < n; at++) {
    if (!list[at]) return laci_fail(err, LAC_BAD_ARGUMENT, "%s[%d] is NULL", name, at);
  }
  return LAC_OK;
}

static lac_status check_options(const lac_options *options, lac_error *err) {
  if (options->permute_for && strcmp(options->permute_for, "magnitude") != 0 &&
      strcmp(options->permute_for, "score") != 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "permute for %s: wanted magnitude or score",
                     options->permute_for);
  }
  if (!(options->time_limit >= 0 && options->time_limit <= 1e9)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "time limit %g: wanted 0 (none) to 1e9 seconds",
                     options->time_limit);
  }
  if (options->strategy && !laci_search_has_strategy(options->strategy)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "strategy %s: wanted %s", options->strategy,
                     laci_search_strategy_names());
  }
  lac_status st = laci_check_threads(options->threads, err);
  if (!st) st = laci_check_enum_value("effort", (int)options->effort, LAC_EFFORT_BEST + 1, err);
  if (!st) st = laci_check_score(options, err);
  if (!st) st = laci_check_mask_rule(options, err);
  if (!st) st = check_text_list("assume", options->assume, options->n_assume, err);
  if (!st) st = check_text_list("targets", options->targets, options->n_targets, err);
  if (!st && options->engine) st = laci_engine_check_name(options->engine, err);
  return st ? st
            : check_text_list("input_shapes", options->input_shapes, options->n_input_shapes, err);
}

/* Parses "NAME=1x3x224x224"; ? or -1 keeps the model's size. */
static lac_status parse_input_shape(const char *text, laci_arena *arena, laci_input_shape *out,
                                    lac_error *err) {
  const char *equals = strrchr(text, '=');
  if (!equals || equals == text) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "input shape \"%s\": wanted NAME=1x3x224x224", text);
  }
  char *name = laci_arena_text_n(arena, text, (size_t)(equals - text));
  if (!name) return laci_fail_memory(err, "the input shapes");
  *out = (laci_input_shape){.name = name};
  for (const char *at = equals + 1; *at;) {
    char *digits_end = NULL;
    long long size = *at == '?' ? -1 : strtoll(at, &digits_end, 10);
    const char *end = *at == '?' ? at + 1 : digits_end;
    bool good = end != at && (*end == 'x' || *end == 0) && size >= -1 && size != 0 &&
                size <= INT32_MAX && out->shape.rank < LACI_MAX_RANK &&
                !(*end == 'x' && end[1] == 0);
    if (!good) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "input shape \"%s\": wanted NAME=1x3x224x224 (sizes from 1, at most %d)",
                       text, LACI_MAX_RANK);
    }
    out->shape.dims[out->shape.rank++] = size;
    at = *end ? end + 1 : end;
  }
  return LAC_OK;
}

static char *join_options(const lac_options *options, lac_error *err) {
  size_t n = 1;
  for (int i = 0; i < options->n_input_shapes; i++) n += strlen(options->input_shapes[i]) + 1;
  for (int i = 0; i < options->n_assume; i++) n += strlen(options->assume[i]) + 1;
  char *text = laci_alloc(n, 1), *at = text;
  if (!text) {
    (void)laci_fail_memory(err, "the options");
    return NULL;
  }
  for (int i = 0; i < options->n_input_shapes; i++)
    at += sprintf(at, "%s\n", options->input_shapes[i]);
  for (int i = 0; i < options->n_assume; i++) at += sprintf(at, "%s\n", options->assume[i]);
  return text;
}

lac_status laci_job_infer_graph(laci_graph *graph, const lac_options *options, lac_error *err) {
  laci_arena arena = {0};
  laci_input_shape *fixed = laci_alloc((size_t)options->n_input_shapes, sizeof *fixed);
  lac_status st = fixed ? LAC_OK : laci_fail_memory(err, "the input shapes");
  for (int i = 0; i < options->n_input_shapes && !st; i++) {
    st = parse_input_shape(options->input_shapes[i], &arena, &fixed[i], err);
  }
  for (int i = 0; i < options->n_assume && !st; i++)
    st = laci_graph_assume_same_channels(graph, options->assume[i], err);
  if (!st) st = laci_graph_infer(graph, fixed, options->n_input_shapes, err);
  laci_free(fixed);
  laci_arena_clear(&arena);
  return st;
}

static lac_status infer_model(const lac_model *model, const lac_options *options, lac_error *err) {
  laci_inferred *inferred = model->inferred;
  char *wanted = join_options(options, err);
  if (!wanted) return LAC_NO_MEMORY;
  lac_status st = LAC_OK;
  pthread_mutex_lock(&inferred->lock);
  if (!inferred->assumed) {
    st = laci_job_infer_graph(model->graph, options, err);
    if (!st) {
      inferred->assumed = wanted;
      wanted = NULL;
    }
  } else if (strcmp(wanted, inferred->assumed) != 0) {
    st = laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s: input shapes and assumptions stay for as long as a model is loaded",
                   model->path);
  }
  pthread_mutex_unlock(&inferred->lock);
  laci_free(wanted);
  return st;
}

lac_status laci_job_open(const lac_model *model, const lac_options *options, laci_job *job,
                         lac_error *err) {
  *job = (laci_job){0};
  lac_status st = check_options(options, err);
  if (st) return st;
  st = laci_targets_find(options, &job->targets, err);
  if (st) {
    laci_job_close(job);
    return st;
  }
  job->engine = options->engine;
  job->budget = laci_budget_with_limit(options->max_memory);
  job->streamed = laci_model_stays_in_files(model, &job->budget);
  if (job->streamed) laci_model_add_streamed_to_budget(model, &job->budget);
  else laci_model_add_stored_to_budget(model, &job->budget);
  st = laci_budget_check(&job->budget, "the model", err);
  if (!st) {
    st = job->streamed ? laci_model_materialise_small(model, err)
                       : laci_model_materialise(model, err);
  }
  if (!st) st = infer_model(model, options, err);
  if (!st) st = laci_pool_create(options->threads, &job->pool, err);
  laci_rules rules = {.pattern = {options->n, options->m},
                      .padding = options->padding,
                      .all_sizes = options->all_sizes,
                      .recurrent = options->recurrent,
                      .targets = job->targets,
                      .n_targets = options->n_targets,
                      .include = options->include,
                      .exclude = options->exclude,
                      .budget = &job->budget};
  if (!st) st = laci_analyze(model->graph, &rules, &job->analysis, err);
  if (st) laci_job_close(job);
  return st;
}

lac_status laci_job_materialise(laci_job *job, const lac_model *model, lac_error *err) {
  if (!job->streamed) return LAC_OK;
  laci_model_add_stored_to_budget(model, &job->budget);
  lac_status st = laci_budget_check(&job->budget, "the model", err);
  if (!st) st = laci_model_materialise(model, err);
  job->streamed = st != LAC_OK;
  return st;
}

void laci_job_close(laci_job *job) {
  laci_analysis_destroy(job->analysis);
  laci_pool_destroy(job->pool);
  laci_free(job->targets);
  *job = (laci_job){0};
}

lac_status laci_check_engine_of_plugin(const lac_options *options, bool samples, lac_error *err) {
  if (samples || laci_verify_can_use_engine(options->engine)) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "the engine '%s' would run nothing: there is no calibration, and what is "
                   "verified must not rest on an engine from a plug-in",
                   options->engine);
}
