/* SPDX-License-Identifier: Apache-2.0
 * Writes the report of a training as JSON: its options, its result, and which layers kept their
 * zeros. */
#include <inttypes.h>
#include <string.h>

#include "lacuna/dtype.h"
#include "lacuna/version.h"
#include "lacuna/report.h"
#include "lacuna/train.h"
#include "report/json.h"
#include "report/json_in.h"

static json_t *accuracy_json(laci_json_writer *w, double top1, double top5, int64_t step) {
  json_t *object = json_object();
  laci_json_add(w, object, "top1", laci_json_number(top1));
  laci_json_add(w, object, "top5", laci_json_number(top5));
  laci_json_add(w, object, "step", json_integer((json_int_t)step));
  return object;
}

static json_t *best_score_json(laci_json_writer *w, const lac_train_result *r) {
  return r->best_top1 >= 0 ? accuracy_json(w, r->best_top1, r->best_top5, r->best_step)
                           : json_null();
}

static json_t *final_score_json(laci_json_writer *w, const lac_train_result *r) {
  if (!r->evaluated) return json_null();
  json_t *object = accuracy_json(w, r->top1, r->top5, r->eval_step);
  laci_json_add(w, object, "loss", laci_json_number(r->eval_loss));
  return object;
}

static const char *end_of_training_name(const lac_train_about *about, const lac_train_result *r) {
  if (r->interrupted) return "interrupted";
  if (about->options->eval_only) return "evaluated";
  return r->reached ? "threshold" : "steps";
}

/** Returns an array with the lines of a text. */
static json_t *text_lines_json(laci_json_writer *w, const char *text) {
  json_t *array = json_array();
  while (*text) {
    size_t n = strcspn(text, "\n");
    laci_json_append(w, array, json_stringn(text, n));
    text += n + (text[n] == '\n');
  }
  return array;
}

/* ---- Masks ---- */

/** Is the weight all zero? Such a weight is not pruned, since its magnitudes cannot tell which
 * elements to keep. */
static bool has_only_zeros(const lac_layer *layer) {
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements;
}

static json_t *dense_layer_json(laci_json_writer *w, const lac_layer *layer) {
  static const char left[] =
      "it does not hold the pattern, and only masks that were there are kept";
  bool is_left = layer->eligible && !has_only_zeros(layer);
  json_t *object = json_object();
  laci_json_add(w, object, "name", laci_json_text(w, layer->name));
  laci_json_add(w, object, "reason", laci_json_text(w, is_left ? left : layer->reason));
  return object;
}

static json_t *masked_layers_json(laci_json_writer *w, const lac_report *report) {
  if (!report) return json_null();
  json_t *object = json_object(), *kept = json_array(), *pruned = json_array(),
         *dense = json_array();
  for (int l = 0; l < report->n_layers; l++) {
    const lac_layer *layer = &report->layers[l];
    if (!layer->pruned || !layer->eligible) laci_json_append(w, dense, dense_layer_json(w, layer));
    else laci_json_append(w, layer->was_pruned ? kept : pruned, laci_json_text(w, layer->name));
  }
  laci_json_add(w, object, "pattern", laci_json_text(w, report->pattern));
  laci_json_add(w, object, "kept", kept);
  laci_json_add(w, object, "pruned", pruned);
  laci_json_add(w, object, "dense", dense);
  return object;
}

/* ---- The whole report ---- */

static void add_run_json(laci_json_writer *w, json_t *root, const lac_train_about *about,
                         const lac_train_result *r) {
  const lac_train_options *o = about->options;
  laci_json_add(w, root, "lacuna", json_string(lac_version()));
  laci_json_add(w, root, "verb", laci_json_text(w, about->verb));
  laci_json_add(w, root, "model", laci_json_text(w, about->model));
  laci_json_add(w, root, "arch", laci_json_text(w, about->arch));
  laci_json_add(w, root, "data", laci_json_text(w, about->data));
  laci_json_add(w, root, "images", json_integer((json_int_t)r->images));
  laci_json_add(w, root, "recipe", laci_json_text(w, r->recipe));
  laci_json_add(w, root, "seed", laci_json_uint64(o->seed));
  laci_json_add(w, root, "dtype", json_string(lac_dtype_name(r->dtype)));
  laci_json_add(w, root, "threads", json_integer(r->threads));
  laci_json_add(w, root, "batch", json_integer(r->batch));
  laci_json_add(w, root, "accumulate", json_integer(r->accumulate));
  laci_json_add(w, root, "processes", json_integer(r->processes));
  laci_json_add(w, root, "ema", o->ema > 0 ? json_real(o->ema) : json_null());
}

static void add_result_json(laci_json_writer *w, json_t *root, const lac_train_about *about,
                            const lac_train_result *r) {
  const double threshold = about->options->stop_threshold;
  laci_json_add(w, root, "first_step", json_integer((json_int_t)r->first_step));
  laci_json_add(w, root, "steps", json_integer((json_int_t)r->steps));
  laci_json_add(w, root, "planned_steps", json_integer((json_int_t)r->planned_steps));
  laci_json_add(w, root, "epochs", laci_json_number(r->epochs));
  laci_json_add(w, root, "ended", json_string(end_of_training_name(about, r)));
  laci_json_add(w, root, "stop_threshold", threshold < 0 ? json_null() : json_real(threshold));
  laci_json_add(w, root, "images_per_second", laci_json_number(r->average_images_per_second));
  laci_json_add(w, root, "hidden", laci_json_number(r->comm_hidden));
  laci_json_add(w, root, "seconds", laci_json_number(r->seconds));
  laci_json_add(w, root, "memory_bytes", json_integer((json_int_t)r->memory_bytes));
  laci_json_add(w, root, "loss", laci_json_number(r->loss));
  laci_json_add(w, root, "best", best_score_json(w, r));
  laci_json_add(w, root, "final", final_score_json(w, r));
  laci_json_add(w, root, "changed", text_lines_json(w, r->changed));
  laci_json_add(w, root, "masks", masked_layers_json(w, about->layers));
}

lac_status laci_train_json(const lac_train_about *about, const lac_train_result *result,
                           char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *root = json_object();
  add_run_json(&w, root, about, result);
  add_result_json(&w, root, about, result);
  return laci_json_finish(&w, root, LACI_JSON_REPORT(15), "the JSON result", text, err);
}

/* ---- The folder of a run ---- */

enum { MARK_VERSION = 2 };

static void add_machine_json(laci_json_writer *w, json_t *root, const laci_run_mark *mark) {
  json_t *machine = json_object();
  laci_json_add(w, machine, "processor", laci_json_text(w, mark->processor));
  laci_json_add(w, machine, "instructions", laci_json_text(w, mark->instructions));
  laci_json_add(w, machine, "system", laci_json_text(w, mark->system));
  laci_json_add(w, machine, "compiler", laci_json_text(w, mark->compiler));
  laci_json_add(w, machine, "threads", json_integer(mark->threads));
  laci_json_add(w, machine, "processes", json_integer(mark->processes));
  laci_json_add(w, root, "machine", machine);
}

static void add_data_json(laci_json_writer *w, json_t *root, const laci_run_mark *mark) {
  char hash[32];
  json_t *data = json_object();
  (void)snprintf(hash, sizeof hash, "%016" PRIx64, mark->data_hash);
  laci_json_add(w, data, "format", laci_json_text(w, mark->format));
  laci_json_add(w, data, "images", json_integer((json_int_t)mark->images));
  laci_json_add(w, data, "test_images", json_integer((json_int_t)mark->test_images));
  laci_json_add(w, data, "classes", json_integer(mark->classes));
  laci_json_add(w, data, "hash", json_string(hash));
  laci_json_add(w, root, "data", data);
}

/* Parses the members of a JSON object, text without its braces, and returns the object; NULL: no
 * memory. */
static json_t *parse_object_members(const char *members) {
  const size_t n = strlen(members) + 3;
  char *text = laci_alloc(n, 1);
  if (text) (void)snprintf(text, n, "{%s}", members);
  json_t *object = text ? json_loads(text, 0, NULL) : NULL;
  laci_free(text);
  return object;
}

lac_status laci_run_mark_json(const laci_run_mark *mark, char **text, lac_error *err) {
  laci_json_writer w = {.whole = true};
  json_t *root = json_object();
  laci_json_add(&w, root, "version", json_integer(MARK_VERSION));
  laci_json_add(&w, root, "lacuna", json_string(lac_version()));
  laci_json_add(&w, root, "started", laci_json_text(&w, mark->started));
  laci_json_add(&w, root, "network", laci_json_text(&w, mark->network));
  laci_json_add(&w, root, "seed", laci_json_uint64(mark->seed));
  laci_json_add(&w, root, "steps", json_integer((json_int_t)mark->steps));
  laci_json_add(&w, root, "options", parse_object_members(mark->options));
  add_machine_json(&w, root, mark);
  add_data_json(&w, root, mark);
  return laci_json_finish(&w, root, LACI_JSON_REPORT(7), "run.json", text, err);
}
