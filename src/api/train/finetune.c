/* SPDX-License-Identifier: Apache-2.0
 * lac_finetune: lac_check, lac_prune or the replay of an earlier run's order, masks, lac_train.
 *
 * The channel orders that a run began with are stored in its folder, so that a run that continues
 * it need not search and verify them again. The file is a permutation file for
 * lac_permutation_apply. The masks are in the checkpoints, and are compared there. */
#include "lacuna/finetune.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/model/given_samples.h"
#include "api/model/structs.h"
#include "api/prune/options_in.h"
#include "api/run/infer.h"
#include "api/run/process_group_in.h"
#include "api/train/mask_in.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/memory.h"
#include "runs/run_folder.h"
#include "comm/comm.h"
#include "lacuna/mask.h"
#include "lacuna/process_group.h"
#include "lacuna/prune.h"

enum { MOST_NAMES = 3, NAMES_BYTES = 512 };

/* The state of one call of lac_finetune. */
typedef struct tuning {
  lac_model *model;
  const lac_finetune_options *options;
  const lac_train_options *training;
  const lac_options *pruning;
  lac_finetune_result *result;
  lac_finetune_result *given; /* the caller's struct, which may have another size than the library's
                                 */
} tuning;

void lac_finetune_options_init(lac_finetune_options *options, size_t size) {
  const lac_finetune_options usual = {
      .size = sizeof usual, .sparse = true, .prune_rest = true, .replay = true};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

void lac_finetune_training_init(lac_train_options *options, size_t size) {
  lac_train_options usual = lac_train_options_default();
  usual.recipe = "cifar";
  usual.epochs = 3;
  usual.rate = 0.02;
  usual.eval_first = true;
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

/* Frees what a result of this library's size holds. */
static void free_result_parts(const lac_finetune_result *result) {
  lac_report_destroy(result->found);
  lac_report_destroy(result->pruning);
  lac_mask_destroy(result->mask);
  if (result->training) lac_text_free(result->training->trace);
  laci_free(result->training);
}

void lac_finetune_result_clear(lac_finetune_result *result) {
  lac_finetune_result own;
  const lac_finetune_result empty = LAC_SIZED(lac_finetune_result);
  if (!result || laci_take_finetune_result(result, &own, NULL)) return;
  free_result_parts(&own);
  laci_give_finetune_result(&empty, result);
}

/* ---- The channel order that is stored in the run's folder ---- */

static bool make_path_of_orders(const char *model_dir, char path[PATH_MAX]) {
  int n = model_dir ? snprintf(path, PATH_MAX, "%s/" LACI_RUN_ORDER, model_dir) : -1;
  return n > 0 && n < PATH_MAX;
}

/* Applies the channel orders of the run in model_dir to the model, if the run has a checkpoint;
 * without one the run starts again, perhaps from another network. Returns false, with the model
 * unchanged, if the orders are not known. */
static bool apply_order_of_run(const tuning *t, const lac_options *pruning) {
  const char *folder = t->training->model_dir;
  char path[PATH_MAX];
  lac_options how = *pruning;
  lac_report *report = NULL;
  lac_error err = {0};
  if (!make_path_of_orders(folder, path) || access(path, F_OK) != 0) return false;
  if (!laci_folder_has_match(folder, LACI_RUN_CHECKPOINTS)) return false;
  how.verify = false; /* no verification: the orders were verified before they were stored */
  lac_status st = lac_permutation_apply(t->model, path, false, &how, &report, &err);
  lac_report_destroy(report);
  if (st) laci_log(LAC_LOG_WARNING, "%s; an order is searched again", err.text);
  else laci_log(LAC_LOG_INFO, "the channels are put in the order of %s/" LACI_RUN_ORDER, folder);
  return st == LAC_OK;
}

/* Does apply_order_of_run for all processes: process 0 decides whether the orders are known; if
 * they are, all processes must be able to read them. */
static lac_status apply_order_in_all_processes(const tuning *t, const lac_options *pruning,
                                               lac_error *err) {
  lac_process_group *group = t->training->group;
  lac_finetune_result *r = t->result;
  r->replayed = apply_order_of_run(t, pruning);
  bool first = r->replayed;
  /* waits without a timeout, since reading the folder may take one process longer */
  lac_status st = laci_comm_agree_without_timeout(laci_process_group_comm(group), LAC_OK, err);
  if (!st) st = lac_process_group_broadcast(group, &first, sizeof first, err);
  if (!st && first != r->replayed) {
    st = laci_fail(err, LAC_IO,
                   "%s: its " LACI_RUN_ORDER
                   " can%s be read here, but process 0 can%s: wanted a "
                   "folder that all processes see",
                   t->training->model_dir, first ? "not" : "", first ? "" : "not");
  }
  return lac_process_group_agree(group, st, err);
}

/* Stores the report's channel orders in the folder; NULL: there are none. The file of an earlier
 * run is removed in any case. A failure is only a warning. */
static void save_order(const char *folder, const lac_report *report) {
  char path[PATH_MAX];
  lac_error err = {0};
  if (!make_path_of_orders(folder, path)) return;
  if (report && !lac_permutation_save(report, path, true, &err)) return;
  (void)unlink(path); /* an earlier run's orders would be wrong for this one */
  if (report)
    laci_log(LAC_LOG_WARNING, "%s; a run that goes on will search the order again", err.text);
}

/* Stores the orders at the first event, since from then on the folder is the run's; only process 0
 * writes. */
static void save_order_at_first_event(const lac_train_event *event, void *context) {
  const tuning *t = context;
  const lac_train_options *given = t->training;
  bool writes = !given->eval_only && lac_process_group_rank(given->group) == 0;
  if (event->kind == LAC_TRAIN_BEGIN && writes) {
    const lac_report *report = t->result->pruning;
    bool searched = report && t->pruning->permute && !t->result->replayed;
    if (searched || event->step == 0) save_order(given->model_dir, searched ? report : NULL);
  }
  if (given->listener) given->listener(event, given->context);
}

/* ---- Layers that are pruned already ---- */

typedef enum kind { KIND_PRUNED, KIND_REST, KIND_ZERO, KIND_NONE } kind;

static kind classify_layer(const lac_layer *layer) {
  if (!layer->eligible) return KIND_NONE;
  if (layer->pruned) return KIND_PRUNED;
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements ? KIND_ZERO : KIND_REST;
}

static void count_layers_of_each_kind(lac_finetune_result *r) {
  int n[KIND_NONE + 1] = {0};
  for (int l = 0; l < r->found->n_layers; l++) n[classify_layer(&r->found->layers[l])]++;
  r->n_pruned = n[KIND_PRUNED];
  r->n_rest = n[KIND_REST];
  r->n_zero = n[KIND_ZERO];
}

/* Writes the layers' names, ": fc, head", if there are few; else an empty text. */
static const char *list_layers_of_kind(const lac_report *report, kind wanted,
                                       char text[NAMES_BYTES]) {
  int n = 0;
  size_t used = 0;
  text[0] = 0;
  for (int l = 0; l < report->n_layers; l++) {
    if (classify_layer(&report->layers[l]) != wanted) continue;
    const char *name = report->layers[l].name;
    if (++n > MOST_NAMES || used + strlen(name) + 3 > NAMES_BYTES) return "";
    used += (size_t)sprintf(text + used, "%s%s", n == 1 ? ": " : ", ", name);
  }
  return text;
}

/* Logs which layers are pruned already, and which are zero everywhere. */
static void log_pruned_layers(const lac_finetune_result *r, bool prunes_rest) {
  char names[NAMES_BYTES];
  if (r->n_pruned && r->n_rest) {
    bool one = r->n_pruned == 1, other = r->n_rest == 1;
    laci_log(
        LAC_LOG_INFO, "%d layer%s hold%s %s and keep%s %s; %d %s%s", r->n_pruned, one ? "" : "s",
        one ? "s" : "", r->found->pattern, one ? "s" : "", one ? "its mask" : "their masks",
        r->n_rest,
        prunes_rest ? (other ? "is pruned" : "are pruned") : (other ? "stays dense" : "stay dense"),
        list_layers_of_kind(r->found, KIND_REST, names));
  }
  if (r->n_zero) {
    laci_log(LAC_LOG_INFO,
             "%d layer%s all zero, so that no magnitude tells what to keep, and stay%s dense%s",
             r->n_zero, r->n_zero == 1 ? " is" : "s are", r->n_zero == 1 ? "s" : "",
             list_layers_of_kind(r->found, KIND_ZERO, names));
  }
}

/* ---- Pruning ---- */

/* Permutes and prunes the layers that are not pruned yet; a run that continues has its channel
 * orders already. */
static lac_status prune_dense_layers(const tuning *t, lac_error *err) {
  lac_finetune_result *r = t->result;
  lac_options how = *t->pruning;
  how.keep_pruned = true;
  how.group = t->training->group;
  if (t->training->recover && how.permute && t->options->replay) {
    lac_status st = apply_order_in_all_processes(t, &how, err);
    if (st) return st;
    how.permute = !r->replayed;
  }
  lac_status st = lac_prune(t->model, &how, &r->pruning, err);
  if (!st && r->pruning->summary.interrupted) {
    st = laci_fail(err, LAC_INTERRUPTED, "interrupted before the training");
    st = lac_process_group_agree(how.group, st, err);
  }
  return st;
}

/* Checks the model, and prunes the layers that are not pruned yet, if the option prune_rest is set.
 */
static lac_status check_and_prune_rest(const tuning *t, lac_error *err) {
  const lac_options *pruning = t->pruning;
  lac_finetune_result *r = t->result;
  lac_status st = lac_check(t->model, NULL, pruning, &r->found, err);
  if (!st) count_layers_of_each_kind(r);
  if (!st && !t->options->prune_rest && r->n_pruned == 0) {
    st = laci_fail(err, LAC_BAD_VALUE, "%s: no layer holds %s, so there are no masks to keep",
                   r->found->model, r->found->pattern);
  }
  st = lac_process_group_agree(t->training->group, st, err);
  if (st) return st;
  log_pruned_layers(r, t->options->prune_rest);
  bool prunes = t->options->prune_rest && (r->n_rest || r->n_pruned == 0);
  return prunes ? prune_dense_layers(t, err) : LAC_OK;
}

/* Makes t->result->mask from the layers that were pruned before and those pruned now. An evaluation
 * of the model itself needs no masks; one of a checkpoint (eval_only with recover) needs the masks
 * that the run was trained with. */
static lac_status make_masks(const tuning *t, lac_error *err) {
  const lac_finetune_options *o = t->options;
  lac_finetune_result *r = t->result;
  if (!o->sparse || (t->training->eval_only && !t->training->recover)) return LAC_OK;
  lac_status st = check_and_prune_rest(t, err);
  if (!st) st = lac_mask_from_model(t->model, t->pruning, &r->mask, err);
  st = lac_process_group_agree(t->training->group, st, err);
  if (!st) st = laci_mask_broadcast(r->mask, laci_process_group_comm(t->training->group), err);
  if (st) return st;
  int n = lac_mask_count(r->mask);
  if (n == 0 && o->must_mask) {
    st = laci_fail(err, LAC_BAD_VALUE, "%s: no layer takes %s, so nothing would be sparse",
                   r->found->model, r->found->pattern);
    return lac_process_group_agree(t->training->group, st, err);
  }
  if (n) {
    laci_log(LAC_LOG_INFO, "%d weight%s %s: zeros stay zero", n, n == 1 ? " holds" : "s hold",
             r->found->pattern);
  } else {
    laci_log(LAC_LOG_INFO, "no weight holds %s: all are trained", r->found->pattern);
  }
  return LAC_OK;
}

/* Does the work of lac_finetune with structs of this library's size. trained: receives lac_train's
 * result. */
static lac_status finetune_model(tuning *t, const char *data, lac_train_result *trained,
                                 lac_error *err) {
  lac_train_options training = *t->training;
  training.run.dtype = laci_dtype_find_supported_or_warn(training.run.engine, training.run.dtype);
  lac_status st = lac_train_check(t->model, data, &training, err);
  if (!st) st = make_masks(t, err);
  if (lac_mask_count(t->result->mask) == 0) training.eval_first = false;
  laci_give_finetune_result(t->result, t->given); /* so that the listener can read the reports and
                                                     masks */
  training.listener = save_order_at_first_event;
  training.context = t;
  return st ? st : lac_train(t->model, data, t->result->mask, &training, trained, err);
}

lac_status lac_finetune(lac_model *model, const char *data, const lac_finetune_options *options,
                        lac_finetune_result *result, lac_error *err) {
  lac_finetune_options own;
  laci_own_options pruning;
  lac_train_options training;
  lac_finetune_result found = LAC_SIZED(lac_finetune_result);
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"result", result});
  if (!st) st = laci_check_struct_finetune_result(result, err);
  if (st) return st;
  laci_give_finetune_result(&found, result);
  st = laci_take_finetune_options(options, &own, err);
  if (!st) st = laci_own_options_copy(own.pruning, &pruning, err);
  if (!st) st = laci_take_train_options(own.training, &training, err);
  if (!st) st = laci_check_data_source(__func__, data, training.from_memory, err);
  if (st) return st;
  if (!own.training) training = lac_finetune_training_default();
  lac_train_result *trained = laci_alloc(1, sizeof *trained);
  if (!trained) return laci_fail_memory(err, "the result");
  *trained = (lac_train_result){.size = sizeof *trained, .best_top1 = -1};
  found.training = trained;
  tuning t = {.model = model,
              .options = &own,
              .training = &training,
              .pruning = &pruning.options,
              .result = &found,
              .given = result};
  lac_context *before = laci_call_enter_context(training.run.context);
  st = finetune_model(&t, data, trained, err);
  laci_call_leave_context(before);
  laci_give_finetune_result(&found, result);
  return st;
}
