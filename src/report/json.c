/* SPDX-License-Identifier: Apache-2.0
 * A report as JSON, through jansson.
 *
 * jansson's *_new functions take what they are given, also when it is NULL, and then fail
 * themselves; so a missing piece anywhere shows in the next add(), and one flag (`whole`) tells at
 * the end whether memory sufficed. */
#include "report/json.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "lacuna/prune.h"
#include "report/utf8.h"

typedef struct writer {
  laci_arena arena; /* repaired texts */
  bool whole;       /* nothing failed so far */
} writer;

static void add(writer *w, json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value)) w->whole = false;
}

static void append(writer *w, json_t *array, json_t *value) {
  if (json_array_append_new(array, value)) w->whole = false;
}

static json_t *text_or_null(writer *w, const char *text) {
  if (!text) return json_null();
  const char *clean = laci_utf8_clean(&w->arena, text);
  return clean ? json_string(clean) : NULL;
}

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *id_or_null(int id) { return id < 0 ? json_null() : json_integer(id); }

static json_t *texts(writer *w, const char *const *items, int n) {
  json_t *array = json_array();
  for (int i = 0; i < n; i++) append(w, array, text_or_null(w, items[i]));
  return array;
}

static json_t *summary_json(writer *w, const lac_summary *summary) {
  json_t *object = json_object();
  add(w, object, "layers", json_integer(summary->layers));
  add(w, object, "eligible", json_integer(summary->eligible));
  add(w, object, "permuted", json_integer(summary->permuted));
  add(w, object, "pruned", json_integer(summary->pruned));
  add(w, object, "groups", json_integer(summary->groups));
  add(w, object, "kept_before", number(summary->kept_before));
  add(w, object, "kept_after", number(summary->kept_after));
  add(w, object, "verified", json_boolean(summary->verified));
  add(w, object, "max_abs_error", number(summary->max_abs_error));
  add(w, object, "max_abs_output", number(summary->max_abs_output));
  add(w, object, "worst_ratio", number(summary->worst_ratio));
  add(w, object, "values_compared", json_integer(summary->values_compared));
  add(w, object, "values_skipped", json_integer(summary->values_skipped));
  add(w, object, "interrupted", json_boolean(summary->interrupted));
  add(w, object, "search_seconds", number(summary->search_seconds));
  add(w, object, "proof_seconds", number(summary->proof_seconds));
  add(w, object, "total_seconds", number(summary->total_seconds));
  return object;
}

static json_t *layer_json(writer *w, const lac_layer *layer) {
  json_t *object = json_object(), *shape = json_array(), *permuted = json_array();
  for (int axis = 0; axis < layer->rank; axis++) append(w, shape, json_integer(layer->shape[axis]));
  if (layer->permuted_k) append(w, permuted, json_string("K"));
  if (layer->permuted_c) append(w, permuted, json_string("C"));
  add(w, object, "name", text_or_null(w, layer->name));
  add(w, object, "op", text_or_null(w, layer->op));
  add(w, object, "weight", text_or_null(w, layer->weight));
  add(w, object, "dtype", json_string(lac_dtype_name(layer->dtype)));
  add(w, object, "shape", shape);
  add(w, object, "channels_in", json_integer(layer->channels_in));
  add(w, object, "channels_out", json_integer(layer->channels_out));
  add(w, object, "convolution_groups", json_integer(layer->convolution_groups));
  add(w, object, "eligible", json_boolean(layer->eligible));
  add(w, object, "pruned", json_boolean(layer->pruned));
  add(w, object, "permuted", permuted);
  add(w, object, "searchable", json_boolean(layer->searchable));
  add(w, object, "group_c", id_or_null(layer->group_c));
  add(w, object, "group_k", id_or_null(layer->group_k));
  add(w, object, "zeros", json_integer(layer->n_zeros));
  add(w, object, "elements", json_integer(layer->n_elements));
  add(w, object, "zero_ratio", number(layer->zero_ratio));
  add(w, object, "holds_pattern", json_boolean(layer->holds_pattern));
  add(w, object, "kept_identity", number(layer->kept_identity));
  add(w, object, "kept", number(layer->kept));
  add(w, object, "total", number(layer->total));
  add(w, object, "reason", text_or_null(w, layer->reason));
  return object;
}

static json_t *permutation_json(writer *w, const lac_group *group) {
  if (!group->permutation) return json_null();
  json_t *array = json_array();
  for (int i = 0; i < group->channels; i++) append(w, array, json_integer(group->permutation[i]));
  return array;
}

static json_t *group_json(writer *w, const lac_group *group) {
  json_t *object = json_object();
  add(w, object, "id", json_integer(group->id));
  add(w, object, "channels", json_integer(group->channels));
  add(w, object, "consumers", texts(w, group->consumers, group->n_consumers));
  add(w, object, "producers", texts(w, group->producers, group->n_producers));
  add(w, object, "frozen", json_boolean(group->frozen));
  add(w, object, "cause", text_or_null(w, group->cause));
  add(w, object, "permutation", permutation_json(w, group));
  add(w, object, "kept_identity", number(group->kept_identity));
  add(w, object, "kept", number(group->kept));
  add(w, object, "upper_bound", number(group->upper_bound));
  add(w, object, "efficacy", number(group->efficacy));
  add(w, object, "strategy", text_or_null(w, group->strategy));
  add(w, object, "iterations", json_integer(group->iterations));
  add(w, object, "proven", json_boolean(group->proven));
  return object;
}

/* JSON's readers hold integers as int64: a larger seed is written as text, so that no digit is
 * lost. */
static json_t *seed_json(uint64_t seed) {
  return seed > INT64_MAX ? json_sprintf("%llu", (unsigned long long)seed)
                          : json_integer((json_int_t)seed);
}

static json_t *pattern_json(const lac_report *report) {
  return report->pattern_m ? json_sprintf("%d:%d", report->pattern_n, report->pattern_m)
                           : json_null();
}

static json_t *report_json(writer *w, const lac_report *report) {
  json_t *object = json_object(), *layers = json_array(), *groups = json_array();
  for (int i = 0; i < report->n_layers; i++) append(w, layers, layer_json(w, &report->layers[i]));
  for (int i = 0; i < report->n_groups; i++) append(w, groups, group_json(w, &report->groups[i]));
  add(w, object, "lacuna", json_string(lac_version()));
  add(w, object, "verb", text_or_null(w, report->verb));
  add(w, object, "model", text_or_null(w, report->model));
  add(w, object, "pattern", pattern_json(report));
  add(w, object, "seed", seed_json(report->seed));
  add(w, object, "summary", summary_json(w, &report->summary));
  add(w, object, "layers", layers);
  add(w, object, "groups", groups);
  return object;
}

lac_status laci_report_json(const lac_report *report, char **text, lac_error *err) {
  writer w = {.whole = true};
  char *copy = NULL;
  *text = NULL;
  const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(17);
  json_t *object = report_json(&w, report);
  size_t size = w.whole ? json_dumpb(object, NULL, 0, flags) : 0;
  if (size > 0) copy = laci_alloc(size + 2, 1);
  if (copy && json_dumpb(object, copy, size, flags) == size) {
    copy[size] = '\n';
    *text = copy;
  } else {
    laci_free(copy);
  }
  json_decref(object);
  laci_arena_clear(&w.arena);
  return *text ? LAC_OK : laci_fail_memory(err, "the report's JSON");
}
