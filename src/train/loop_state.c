/* SPDX-License-Identifier: Apache-2.0
 * Saves and restores the state of a training loop: checkpoints of the run, and those of its best
 * weights, in the folder "best" inside the run's folder.
 *
 * Best weights are written before the checkpoint that refers to them, and the two latest are kept.
 * So the latest checkpoint always finds its best weights, wherever the run was interrupted. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/memory.h"
#include "runs/run_folder.h"
#include "graph/training_graph.h"
#include "train/checkpoint.h"
#include "train/same_state.h"
#include "train/feed.h"
#include "train/loop.h"
#include "train/loop_in.h"
#include "train/optimizer.h"
#include "train/data_parallel.h"
#include "train/snapshot.h"
#include "train/trace.h"
#include "train/trainer.h"

enum { KEEP_BEST = 2, MOST_ABOUT = 4096 };

static lac_status alloc_loop_buffers(laci_loop *l, lac_error *err) {
  const laci_training_graph *graph = laci_trainer_graph(l->trainer);
  l->structure = laci_parameters_hash(laci_trainer_parameters(l->trainer), graph->n_params);
  l->weights = laci_trainer_weights(l->trainer);
  l->n_weights = laci_optimizer_count_floats(laci_trainer_optimizer(l->trainer));
  l->statistics = laci_trainer_statistics(l->trainer, &l->n_statistics);
  /* restarts the moving averages, since masks may have been set after the trainer was created */
  laci_trainer_reset_average(l->trainer);
  size_t n_weights = (size_t)l->n_weights, n_statistics = (size_t)l->n_statistics;
  l->statistics_before = laci_alloc(n_statistics, sizeof(float));
  bool whole = l->statistics_before != NULL;
  if (l->options->keep_best) {
    l->best_weights = laci_alloc(n_weights, sizeof(float));
    l->best_statistics = laci_alloc(n_statistics, sizeof(float));
    whole = whole && l->best_weights && l->best_statistics;
  }
  return whole ? LAC_OK : laci_fail_memory(err, "the best weights");
}

/* Allocates the state: each process first does its own part, then all agree on the outcome. */
lac_status laci_loop_allocate_state(laci_loop *l, lac_error *err) {
  lac_status st = laci_comm_agree_without_timeout(l->comm, alloc_loop_buffers(l, err), err);
  if (!st && l->comm) st = laci_data_parallel_create(l->trainer, l->options->share, &l->share, err);
  if (st || !l->options->trace) return st;
  st = laci_trace_create(laci_trainer_engine(l->trainer),
                         laci_data_parallel_count_buckets(l->share), &l->trace, err);
  st = laci_comm_agree_on_status(l->comm, st, err);
  if (!st) laci_data_parallel_set_trace(l->share, l->trace);
  return st;
}

void laci_loop_clear_state(laci_loop *l) {
  laci_feed_destroy(l->feed);
  laci_data_parallel_destroy(l->share);
  laci_trace_destroy(l->trace);
  laci_free(l->statistics_before);
  laci_free(l->best_weights);
  laci_free(l->best_statistics);
}

const char *laci_loop_saved_checkpoint_text(const laci_loop *l) { return l->saved_text; }

static void update_saved_text(laci_loop *l) {
  l->saved = l->step;
  (void)snprintf(l->saved_text, sizeof l->saved_text,
                 "; the checkpoint of step %" PRId64 " is kept", l->step);
}

static bool are_all_finite(const float *numbers, int64_t n) {
  float sum = 0; /* x * 0 is NaN if x is NaN or infinite, else 0; so the sum shows whether all are
                    finite */
  for (int64_t at = 0; at < n; at++) sum += numbers[at] * 0.0F;
  return sum == 0;
}

lac_status laci_loop_check_finite(const laci_loop *l, lac_error *err) {
  const laci_training_graph *graph = laci_trainer_graph(l->trainer);
  const laci_parameter *parameters = laci_trainer_parameters(l->trainer);
  const char *what = NULL;
  for (int p = 0; p < graph->n_params && !what; p++) {
    if (!are_all_finite(l->weights + parameters[p].offset, parameters[p].count)) {
      what = parameters[p].name;
    }
  }
  if (!what && !are_all_finite(l->statistics, l->n_statistics)) what = "a running statistic";
  if (!what) return LAC_OK;
  return laci_hint(
      err, LAC_HINT_RATE,
      laci_fail(err, LAC_BAD_VALUE,
                "step %" PRId64
                ": %s is no finite number any more; a lower rate or a warm-up may help%s",
                l->step, what, l->saved_text));
}

/* ---- Snapshots ---- */

static laci_snapshot make_snapshot(const laci_loop *l, const char *options) {
  return (laci_snapshot){.step = l->step,
                         .epoch = l->step / l->options->steps_per_epoch,
                         .seed = l->options->feed.seed,
                         .best_top1 = l->best_top1,
                         .best_step = l->best_step,
                         .structure = l->structure,
                         .options = options,
                         .weights = l->weights,
                         .n_weights = l->n_weights,
                         .statistics = l->statistics,
                         .n_statistics = l->n_statistics,
                         .average = laci_trainer_average_weights(l->trainer),
                         .average_statistics = laci_trainer_average_statistics(l->trainer),
                         .masks = l->options->masks,
                         .optimizer = laci_trainer_optimizer(l->trainer)};
}

static lac_status write_snapshot(const laci_loop *l, const char *folder, int keep, lac_error *err) {
  char options[MOST_ABOUT];
  (void)snprintf(options, sizeof options, "{\"evaluated\": %" PRId64 ", %s}", l->evaluated,
                 l->options->about);
  laci_snapshot snapshot = make_snapshot(l, options);
  return laci_snapshot_write_checkpoint(folder, &snapshot, keep, err);
}

bool laci_loop_is_first_process(const laci_loop *l) { return laci_comm_rank(l->comm) == 0; }

lac_status laci_loop_save_checkpoint(laci_loop *l, lac_error *err) {
  lac_status st = laci_loop_check_finite(l, err);
  if (!st && laci_loop_is_first_process(l)) {
    st = write_snapshot(l, l->options->folder, l->options->keep, err);
  }
  if (!st) update_saved_text(l);
  return st;
}

lac_status laci_loop_compare_processes(laci_loop *l, lac_error *err) {
  if (l->compared == l->step) return LAC_OK;
  l->compared = l->step;
  return laci_compare_states_of_processes(l->comm, l->trainer, l->options->masks, l->step, err);
}

/* ---- The best weights ---- */

static lac_status make_best_folder_path(const char *folder, char path[PATH_MAX], lac_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/" LACI_RUN_BEST, folder);
  if (n > 0 && n < PATH_MAX) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: the name is too long", folder);
}

static void copy_to_best_weights(laci_loop *l) {
  memcpy(l->best_weights, l->weights, (size_t)l->n_weights * sizeof(float));
  memcpy(l->best_statistics, l->statistics, (size_t)l->n_statistics * sizeof(float));
}

lac_status laci_loop_keep_best_weights(laci_loop *l, lac_error *err) {
  char path[PATH_MAX];
  if (!l->options->keep_best) return LAC_OK;
  copy_to_best_weights(l);
  if (!l->options->folder || l->options->eval_only || !laci_loop_is_first_process(l)) return LAC_OK;
  lac_status st = make_best_folder_path(l->options->folder, path, err);
  if (!st && mkdir(path, 0777) != 0 && errno != EEXIST) {
    st = laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
  }
  if (!st && laci_path_is_link(path)) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: it is a link, which is not followed", path);
  }
  return st ? st : write_snapshot(l, path, KEEP_BEST, err);
}

void laci_loop_restore_best_weights(laci_loop *l) {
  if (!l->best_weights || l->best_step == 0 || l->options->eval_only) return;
  memcpy(l->weights, l->best_weights, (size_t)l->n_weights * sizeof(float));
  memcpy(l->statistics, l->best_statistics, (size_t)l->n_statistics * sizeof(float));
}

/** Restores the best weights; they pass through the trainer's buffers. There are none if the
 * earlier run was not told to keep them. */
static lac_status recover_best_weights(laci_loop *l, int64_t step, lac_error *err) {
  char folder[PATH_MAX], path[PATH_MAX];
  laci_checkpoint *checkpoint = NULL;
  lac_status st = make_best_folder_path(l->options->folder, folder, err);
  if (st) return st;
  int n = snprintf(path, sizeof path, "%s/checkpoint-%012" PRId64 ".lac", folder, step);
  if (n < 0 || n >= PATH_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: the name is too long", folder);
  }
  lac_error cause = {0};
  st = laci_checkpoint_open(path, &checkpoint, &cause);
  l->best_is_lost = st == LAC_NOT_FOUND || st == LAC_BAD_FILE;
  if (l->best_is_lost) {
    laci_log(LAC_LOG_WARNING, "%s: the best weights are looked for from here on", cause.text);
    return LAC_OK;
  }
  if (st) return laci_fail(err, st, "%s", cause.text);
  laci_snapshot snapshot = make_snapshot(l, NULL);
  st = laci_snapshot_read_checkpoint(checkpoint, &snapshot, err);
  if (!st) copy_to_best_weights(l);
  laci_checkpoint_close(checkpoint);
  return st;
}

/* ---- Continuing from a checkpoint ---- */

/** Writes a JSON number or text in readable form: 0.9, not 0.899999976. It is cut off at
 * `capacity`. */
static void format_json_value(const json_t *value, char *text, size_t capacity) {
  size_t n =
      value ? json_dumpb(value, text, capacity - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : 0;
  text[n < capacity ? n : 0] = '\0';
}

/** Logs a line for each option that differs from the checkpoint's. read: the checkpoint's options;
 * about: this run's. Returns false if the checkpoint has no options to compare. */
static bool log_changed_options(const char *read, const char *about) {
  char whole[MOST_ABOUT];
  (void)snprintf(whole, sizeof whole, "{%s}", about);
  json_t *then = json_loads(read, 0, NULL), *now = json_loads(whole, 0, NULL);
  const char *key;
  json_t *value;
  bool known = json_is_object(then) && json_is_object(now);
  json_object_foreach(now, key, value) {
    char old[128], new[128];
    const json_t *before = json_object_get(then, key);
    if (!known || json_equal(before, value)) continue;
    format_json_value(before, old, sizeof old);
    format_json_value(value, new, sizeof new);
    laci_log(LAC_LOG_WARNING, "the checkpoint was made with %s %s, this run has %s", key,
             before ? old : "unknown", new);
  }
  json_decref(then);
  json_decref(now);
  return known;
}

/** Checks that there are as many processes as when the checkpoint was written. Sums over processes
 * and means of running statistics depend on it. */
static lac_status check_process_count(const laci_loop *l, const char *read, const char *path,
                                      lac_error *err) {
  const char *at = strstr(read, "\"processes\": ");
  int before = 1, now = laci_comm_size(l->comm);
  if (at && sscanf(at, "\"processes\": %d", &before) != 1) before = 1;
  if (before == now || l->options->eval_only) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s: made by %d process%s, but this run has %d: wanted as many", path, before,
                   before == 1 ? "" : "es", now);
}

/** Takes over from the checkpoint which step was evaluated last, if the options of its evaluation
 * are those of this run. */
static void read_evaluated_step(laci_loop *l, const laci_snapshot *read) {
  int64_t evaluated = 0;
  int used = 0;
  bool known = sscanf(read->options, "{\"evaluated\": %" SCNd64 ", %n", &evaluated, &used) == 1;
  l->evaluated = known && evaluated >= 0 && evaluated <= l->step ? evaluated : 0;
  size_t n = strlen(l->options->about);
  bool same = known && used > 0 && strncmp(read->options + used, l->options->about, n) == 0;
  if (same || l->options->eval_only) return;
  if (!log_changed_options(read->options, l->options->about)) {
    laci_log(LAC_LOG_WARNING, "the checkpoint was made with other options: %s", read->options);
  }
}

static lac_status read_newest_snapshot(laci_loop *l, const laci_checkpoint *checkpoint,
                                       lac_error *err) {
  uint8_t *masks = l->options->masks, *wanted = NULL;
  laci_snapshot snapshot = make_snapshot(l, NULL);
  lac_status st = LAC_OK;
  if (masks) {
    wanted = laci_alloc((size_t)l->n_weights, 1);
    if (!wanted) return laci_fail_memory(err, "masks");
    memcpy(wanted, masks, (size_t)l->n_weights);
  }
  st = laci_snapshot_read_checkpoint(checkpoint, &snapshot, err);
  if (!st && wanted && memcmp(wanted, masks, (size_t)l->n_weights) != 0) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: its masks are not those of this network",
                   laci_checkpoint_path(checkpoint));
  }
  if (!st && snapshot.seed != l->options->feed.seed) {
    st = laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s: made with seed %" PRIu64 ", but this run has seed %" PRIu64,
                   laci_checkpoint_path(checkpoint), snapshot.seed, l->options->feed.seed);
  }
  int64_t most =
      INT64_MAX / 2 / l->options->accumulate / l->options->feed.batch / laci_comm_size(l->comm);
  if (!st && snapshot.step > most) { /* positions of images are counted in 64 bits */
    st = laci_fail(err, LAC_BAD_FILE, "%s: step %" PRId64 ", wanted %" PRId64 " at most",
                   laci_checkpoint_path(checkpoint), snapshot.step, most);
  }
  if (!st) st = check_process_count(l, snapshot.options, laci_checkpoint_path(checkpoint), err);
  laci_free(wanted);
  if (st) return st;
  l->step = snapshot.step;
  l->best_top1 = snapshot.best_top1;
  l->best_step = snapshot.best_step;
  read_evaluated_step(l, &snapshot);
  update_saved_text(l);
  return LAC_OK;
}

static lac_status recover_newest_checkpoint(laci_loop *l, lac_error *err) {
  laci_checkpoint *checkpoint = NULL;
  lac_status st = laci_checkpoint_open_newest(l->options->folder, &checkpoint, err);
  if (st == LAC_NOT_FOUND && !l->options->eval_only) {
    laci_log(LAC_LOG_INFO, "%s: no checkpoint yet, from the start", l->options->folder);
    return LAC_OK;
  }
  if (!st) st = read_newest_snapshot(l, checkpoint, err);
  bool has_best = !st && l->options->keep_best && l->best_step > 0 && !l->options->eval_only;
  if (has_best) st = recover_best_weights(l, l->best_step, err);
  /* reads the latest checkpoint again, because the best weights were read through the trainer's
   * buffers */
  if (has_best && !st) st = read_newest_snapshot(l, checkpoint, err);
  if (l->best_is_lost) {
    l->best_top1 = -1;
    l->best_step = 0;
  }
  if (!st) {
    laci_log(LAC_LOG_INFO, "%s: going on after step %" PRId64, laci_checkpoint_path(checkpoint),
             l->step);
  }
  laci_checkpoint_close(checkpoint);
  return st;
}

/** How far the run has come. Process 0 sends it to all processes, in addition to the trainer's
    state. */
typedef struct progress {
  int64_t step, evaluated, saved, best_step;
  double best_top1, best_top5;
  char saved_text[sizeof((laci_loop *)0)->saved_text];
} progress;

static progress make_progress(const laci_loop *l) {
  progress n = {.step = l->step,
                .evaluated = l->evaluated,
                .saved = l->saved,
                .best_step = l->best_step,
                .best_top1 = l->best_top1,
                .best_top5 = l->best_top5};
  memcpy(n.saved_text, l->saved_text, sizeof n.saved_text);
  return n;
}

static void set_progress(laci_loop *l, const progress *n) {
  l->step = n->step;
  l->evaluated = n->evaluated;
  l->saved = n->saved;
  l->best_step = n->best_step;
  l->best_top1 = n->best_top1;
  l->best_top5 = n->best_top5;
  memcpy(l->saved_text, n->saved_text, sizeof l->saved_text);
}

static lac_status broadcast_best_weights(laci_loop *l, lac_error *err) {
  laci_comm *comm = l->comm;
  if (!l->best_weights || l->best_step == 0) return LAC_OK;
  lac_status st =
      laci_comm_broadcast(comm, l->best_weights, (size_t)l->n_weights * sizeof(float), err);
  if (st) return st;
  return laci_comm_broadcast(comm, l->best_statistics, (size_t)l->n_statistics * sizeof(float),
                             err);
}

lac_status laci_loop_recover_checkpoint(laci_loop *l, lac_error *err) {
  lac_status st = LAC_OK;
  if (l->options->recover && laci_loop_is_first_process(l)) st = recover_newest_checkpoint(l, err);
  st = laci_comm_agree_without_timeout(l->comm, st, err);
  if (st || !l->share) return st;
  progress n = make_progress(l);
  st = laci_data_parallel_broadcast_state(l->share, l->options->masks, &n, sizeof n, err);
  if (st) return st;
  set_progress(l, &n);
  return broadcast_best_weights(l, err);
}

/* ---- A new run in an old folder ---- */

bool laci_loop_has_checkpoints(const char *folder) {
  return laci_folder_has_match(folder, LACI_RUN_CHECKPOINTS);
}

lac_status laci_loop_remove_checkpoints(const char *folder, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = make_best_folder_path(folder, path, err);
  if (!st) st = laci_folder_remove_matching(folder, LACI_RUN_CHECKPOINTS, err);
  if (st || laci_path_is_link(path)) return st; /* what a link points to is not removed */
  return laci_folder_remove_matching(path, LACI_RUN_CHECKPOINTS, err);
}
