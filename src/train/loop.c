/* SPDX-License-Identifier: Apache-2.0
 * Runs a training (loop.h). The order inside an iteration matters: first the evaluation, then the
 * checkpoint, which records that it was done, then the step. If a run is interrupted in an
 * evaluation, its checkpoint does not record that, and the evaluation is done when the run
 * continues. loop_state.c saves and restores the state. */
#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "train/loop_in.h"
#include "train/data_parallel.h"
#include "train/trace.h"
#include "train/trainer.h"

/** Is there a multiple of `every` in (from, to]? Then the steps from `from` to `to` crossed one. */
static bool crosses_multiple(int64_t from, int64_t to, int64_t every) {
  return every > 0 && to / every > from / every;
}

static bool has_reached_threshold(const laci_loop *l) {
  return l->options->stop_threshold >= 0 && l->best_top1 >= l->options->stop_threshold;
}

static bool is_run_over(const laci_loop *l) {
  return l->step >= l->options->steps || has_reached_threshold(l);
}

static lac_status send_event(const laci_loop *l, laci_loop_event *event, lac_error *err) {
  event->step = l->step;
  event->epoch = l->step / l->options->steps_per_epoch;
  event->steps = l->options->steps;
  return l->hooks->on_event ? l->hooks->on_event(l->hooks->context, event, err) : LAC_OK;
}

/** Reports an event. If that fails at process 0, as on a full disk, all processes end. */
static lac_status report_event(const laci_loop *l, laci_loop_event *event, lac_error *err) {
  return laci_comm_agree_without_timeout(l->comm, send_event(l, event, err), err);
}

/** Reports an event after a training step, without communication. If reporting fails, the other
 * processes learn of it at the next vote. */
static lac_status report_step_event(laci_loop *l, laci_loop_event *event, lac_error *err) {
  lac_status st = send_event(l, event, l->share ? &l->unreported : err);
  if (!l->share) return st;
  if (st && !l->unreported.status)
    (void)laci_fail(&l->unreported, st, "the log of steps cannot be written");
  return LAC_OK;
}

/* ---- Evaluation and checkpoints ---- */

/** Evaluates the network. A failure LAC_BAD_VALUE (NaN or infinity) is one of the training, whose
 * state is not worth saving. After any other failure the state is intact. */
static lac_status evaluate_network(laci_loop *l, laci_loop_score *score, lac_error *err) {
  lac_status st = l->hooks->evaluate(l->hooks->context, score, err);
  l->stopped = st && st != LAC_BAD_VALUE;
  if (st == LAC_BAD_VALUE && l->step > l->result->first_step) {
    char what[sizeof err->text];
    (void)snprintf(what, sizeof what, "%s", err ? err->text : "");
    st = laci_hint(
        err, LAC_HINT_RATE,
        laci_fail(err, st, "step %" PRId64 ": %.200s; a lower rate or a warm-up may help%s",
                  l->step, what, laci_loop_saved_checkpoint_text(l)));
  }
  return st;
}

static lac_status evaluate_and_record(laci_loop *l, lac_error *err) {
  laci_loop_score score = {0};
  lac_status st = evaluate_network(l, &score, err);
  if (st) return st;
  l->evaluated = l->step;
  l->result->evaluated = true;
  l->result->evaluated_step = l->step;
  l->result->score = score;
  bool is_best = score.top1 > l->best_top1;
  if (is_best) {
    l->best_top1 = score.top1;
    l->best_top5 = score.top5;
    l->best_step = l->step;
    l->best_score = score.loss;
    st = laci_comm_agree_without_timeout(l->comm, laci_loop_keep_best_weights(l, err), err);
  }
  laci_loop_event event = {.kind = LACI_LOOP_SCORE, .score = score, .is_best = is_best};
  return st ? st : report_event(l, &event, err);
}

/** Evaluates the network. If moving averages of the weights are kept, they replace the weights
 * during the evaluation. */
static lac_status evaluate_averaged_weights(laci_loop *l, lac_error *err) {
  lac_status st = laci_comm_agree_on_status(l->comm, laci_loop_check_finite(l, err), err);
  if (st) return st;
  laci_trainer_swap_average(l->trainer);
  st = evaluate_and_record(l, err);
  laci_trainer_swap_average(l->trainer);
  return st;
}

/** Evaluates once before the first step. The score is reported as an event, and used for nothing
 * else. */
static lac_status evaluate_before_first_step(laci_loop *l, lac_error *err) {
  laci_loop_event event = {.kind = LACI_LOOP_SCORE};
  lac_status st = evaluate_network(l, &event.score, err);
  if (!st) l->first_score = event.score.loss;
  return st ? st : report_event(l, &event, err);
}

/** Saves a checkpoint. Fails instead if the states of the processes differ. */
static lac_status save_checkpoint(laci_loop *l, lac_error *err) {
  lac_status st = laci_loop_compare_processes(l, err);
  if (!st) st = laci_comm_agree_without_timeout(l->comm, laci_loop_save_checkpoint(l, err), err);
  laci_loop_event event = {.kind = LACI_LOOP_SAVED};
  return st ? st : report_event(l, &event, err);
}

static lac_status evaluate_and_save_if_due(laci_loop *l, lac_error *err) {
  const laci_loop_options *o = l->options;
  bool ends = l->step >= o->steps;
  if (!ends && l->step % o->steps_per_loop != 0) return LAC_OK;
  lac_status st = LAC_OK;
  bool scores = l->hooks->evaluate && l->evaluated < l->step &&
                (ends || crosses_multiple(l->evaluated, l->step, o->eval_every));
  int64_t best_before = l->best_step;
  if (scores) st = evaluate_averaged_weights(l, err);
  if (st || !o->folder) return st;
  /* new best weights are saved at once, so that a checkpoint which refers to them finds them */
  bool found_best = o->keep_best && l->best_step != best_before;
  bool saves =
      is_run_over(l) || found_best || crosses_multiple(l->saved, l->step, o->checkpoint_every);
  saves = saves && l->saved < l->step;
  /* a checkpoint of this step may exist that does not record the evaluation which was just done */
  saves = saves || (scores && l->saved == l->step);
  return saves ? save_checkpoint(l, err) : LAC_OK;
}

/* ---- A step ---- */

static lac_status fail_not_finite_loss(const laci_loop *l, double loss, lac_error *err) {
  const double plain = isnan(loss) ? (double)NAN : loss; /* the sign of a NaN means nothing */
  return laci_hint(
      err, LAC_HINT_RATE,
      laci_fail(err, LAC_BAD_VALUE,
                "step %" PRId64 ": the loss is %g; a lower rate or a warm-up may help%s",
                l->step + 1, plain, laci_loop_saved_checkpoint_text(l)));
}

/** Returns the next batch of this process; fails if it was interrupted. */
static lac_status take_next_batch(laci_loop *l, const float **images, const float **labels,
                                  lac_error *err) {
  if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  lac_status st = laci_feed_take_batch(l->feed, images, labels, err);
  l->stopped = st != LAC_OK;
  return st;
}

/** Returns the index of the largest of n numbers; of several, the first. */
static int find_largest_logit(const float *numbers, int n) {
  int best = 0;
  for (int k = 1; k < n; k++) {
    if (numbers[k] > numbers[best]) best = k;
  }
  return best;
}

/** Adds to l->n_right the number of images in the last batch whose class the network found. */
static void count_correct_images(laci_loop *l, const float *labels) {
  const int n = l->options->feed.n_classes;
  const float *logits = laci_trainer_last_logits(l->trainer);
  for (int k = 0; k < l->options->feed.batch; k++) {
    const size_t at = (size_t)k * (size_t)n;
    l->n_right += find_largest_logit(logits + at, n) == find_largest_logit(labels + at, n);
  }
}

static lac_status run_batch(laci_loop *l, const float *images, const float *labels, double *sum,
                            lac_error *err) {
  float part = 0;
  laci_batch_watch watch = {.n_buckets = 0};
  if (l->share) return laci_data_parallel_run_early_batch(l->share, images, labels, sum, err);
  if (l->trace) {
    watch.begins = laci_trace_step_begin_times(l->trace);
    watch.seconds = laci_trace_step_durations(l->trace);
  }
  lac_status st = laci_trainer_run_batch_watched(l->trainer, images, labels, &part, &watch, err);
  *sum += (double)part;
  return st;
}

static lac_status fail_with_untold_error(const laci_loop *l, lac_error *err) {
  return laci_fail(err, l->unreported.status, "%s", l->unreported.text);
}

/** Computes the gradients of all batches of a step. *loss: mean over all these batches and all
 * processes. */
static lac_status run_batches_of_step(laci_loop *l, double *loss, lac_error *err) {
  const int n = l->options->accumulate;
  double sum = 0;
  l->n_right = 0;
  for (int k = 0; k < n; k++) {
    const float *images = NULL, *labels = NULL;
    lac_status st = l->unreported.status ? fail_with_untold_error(l, err)
                                         : take_next_batch(l, &images, &labels, err);
    if (st) {
      st = laci_data_parallel_end_failed_step(l->share, st, n, err);
    } else if (l->share && k == n - 1) {
      st = laci_data_parallel_run_last_batch(l->share, images, labels, n, &sum, err);
    } else {
      st = run_batch(l, images, labels, &sum, err);
    }
    if (st) return st;
    count_correct_images(l, labels);
    if (!isfinite(sum) && !l->share) return fail_not_finite_loss(l, sum, err);
  }
  *loss = l->share ? sum : sum / n;
  return isfinite(*loss)
             ? LAC_OK
             : laci_comm_agree_on_status(l->comm, fail_not_finite_loss(l, *loss, err), err);
}

static void update_mean_speed(laci_loop *l, double seconds) {
  const double weight = l->seconds_a_step > 0 ? 0.1 : 1; /* weight of the new time in the running
                                                            mean */
  l->result->step_seconds += seconds;
  l->seconds_a_step += weight * (seconds - l->seconds_a_step);
  double images = (double)l->options->feed.batch * l->options->accumulate * laci_comm_size(l->comm);
  l->result->images_per_second = l->seconds_a_step > 0 ? images / l->seconds_a_step : 0;
  if (!l->share) return;
  laci_data_parallel_times times = laci_data_parallel_times_of_last_step(l->share);
  l->result->comm_seconds += times.busy;
  l->result->comm_waited += times.waited;
}

static lac_status run_training_step(laci_loop *l, lac_error *err) {
  const laci_loop_options *o = l->options;
  double begin = laci_clock_seconds(), loss = 0;
  memcpy(l->statistics_before, l->statistics, (size_t)l->n_statistics * sizeof(float));
  lac_status st = run_batches_of_step(l, &loss, err);
  if (st) { /* undoes the step: if all processes agreed that one had no batch, their states are
               equal */
    l->stopped = l->stopped || (l->share && laci_comm_is_failure_known_to_all(l->comm));
    memcpy(l->statistics, l->statistics_before, (size_t)l->n_statistics * sizeof(float));
    return st;
  }
  double rate = laci_schedule_rate(&o->schedule, l->step);
  st = laci_trainer_update(l->trainer, rate, err);
  if (st) return st;
  l->step++;
  l->result->loss = loss;
  if (isnan(l->first_loss)) l->first_loss = loss;
  l->most_rate = fmax(l->most_rate, rate);
  const double end = laci_clock_seconds();
  if (l->trace) laci_trace_record_step(l->trace, l->step, begin, end);
  update_mean_speed(l, end - begin);
  bool compares = l->compared < 0 || (o->paranoid > 0 && l->step % o->paranoid == 0);
  if (compares) st = laci_loop_compare_processes(l, err);
  if (st) return st;
  laci_progress("train", l->step, o->steps);
  laci_loop_event event = {
      .kind = LACI_LOOP_STEP,
      .loss = loss,
      .rate = rate,
      .top1 = 100 * (double)l->n_right / ((double)o->feed.batch * (double)o->accumulate),
      .images_per_second = l->result->images_per_second,
      .seconds_left = l->seconds_a_step * (double)(o->steps - l->step)};
  return report_step_event(l, &event, err);
}

/* ---- The run ---- */

/** Creates the feed of batches. The batches of each step are divided among the processes. */
static lac_status create_feed(laci_loop *l, lac_error *err) {
  laci_feed_options o = l->options->feed;
  o.stride = laci_comm_size(l->comm);
  int64_t first = l->step * l->options->accumulate * o.stride + laci_comm_rank(l->comm);
  return laci_feed_create(l->set, &o, first, &l->feed, err);
}

static lac_status run_loop(laci_loop *l, lac_error *err) {
  if (l->options->eval_only) return evaluate_averaged_weights(l, err);
  lac_status st = LAC_OK;
  if (l->options->eval_first && l->hooks->evaluate && l->step == 0)
    st = evaluate_before_first_step(l, err);
  if (!st) {
    st = create_feed(l, err);
    st = laci_comm_agree_on_status(l->comm, st, err);
  }
  while (!st) {
    st = evaluate_and_save_if_due(l, err);
    if (st || is_run_over(l)) break;
    st = run_training_step(l, err);
  }
  if (!st && l->share) {
    st = laci_comm_agree_on_status(
        l->comm, l->unreported.status ? fail_with_untold_error(l, err) : LAC_OK, err);
  }
  /* if an earlier run took all steps, its result is evaluated again, so that it can be reported */
  bool idle = l->step == l->result->first_step && !l->result->evaluated;
  return !st && idle && l->hooks->evaluate ? evaluate_averaged_weights(l, err) : st;
}

/** Saves a checkpoint at the end of the run, if there are steps that no checkpoint has. may_agree:
 * all processes call this, so that they can agree on a status. */
static lac_status save_unsaved_steps(laci_loop *l, bool may_agree, lac_error *err) {
  const laci_loop_options *o = l->options;
  if (!o->folder || o->eval_only || l->saved >= l->step) return LAC_OK;
  if (may_agree) return save_checkpoint(l, err);
  return laci_loop_is_first_process(l) ? laci_loop_save_checkpoint(l, err) : LAC_OK;
}

static lac_status end_interrupted_run(laci_loop *l, lac_error *err) {
  if (l->options->eval_only) return LAC_INTERRUPTED;
  lac_status st = save_unsaved_steps(l, true, err);
  if (st) return st;
  st = laci_fail(err, LAC_INTERRUPTED, "interrupted after step %" PRId64 "%s", l->step,
                 laci_loop_saved_checkpoint_text(l));
  /* agrees once more, since processes have communicated after the failure */
  return laci_comm_agree_on_status(l->comm, st, err);
}

/** Ends a run that stopped between two steps, for example because an image cannot be read. Saves a
 * checkpoint first, from which a later run can continue. Fails with `cause`, the first failure. */
static lac_status end_stopped_run(laci_loop *l, lac_status cause, lac_error *err) {
  char text[sizeof err->text];
  bool is_saved = !save_unsaved_steps(l, cause != LAC_PEER, NULL);
  if (is_saved && err) {
    (void)snprintf(text, sizeof text, "%s", err->text);
    (void)laci_fail(err, cause, "%s%s", text, laci_loop_saved_checkpoint_text(l));
  }
  /* agrees once more, since processes have communicated after the failure */
  return laci_comm_agree_on_status(l->comm, cause, err);
}

/** Is the loss at the end worse than at the beginning, and worse than that of a random guess? The
 * limit is much wider for losses of training steps than for evaluations, since after few steps the
 * running statistics are not up to date. *end: the loss at the end. */
static bool has_diverged(const laci_loop *l, double *end) {
  static const double far = 10, worse = 2;
  const laci_loop_result *r = l->result;
  const bool takes_best = l->options->keep_best && l->best_step != l->step;
  const bool scored = r->evaluated && r->evaluated_step == l->step;
  const double guess = log(fmax(2, (double)l->options->feed.n_classes));
  double score = takes_best ? l->best_score : scored ? r->score.loss : (double)NAN;
  *end = takes_best ? score : fmax(r->loss, score);
  if (*end > far * guess) return true;
  if (!(*end > guess)) return false;
  return *end > far * l->first_loss || score > worse * l->first_score;
}

static void warn_if_diverged(const laci_loop *l) {
  double end = NAN;
  if (l->options->eval_only || isnan(l->first_loss)) return;
  if (!has_diverged(l, &end) || !laci_loop_is_first_process(l)) return;
  const bool scored = !isnan(l->first_score);
  laci_log(LAC_LOG_WARNING,
           "the training has diverged: the loss is %.4g at the end and was %.4g %s; a lower rate "
           "than %g may help, %g say",
           end, scored ? l->first_score : l->first_loss,
           scored ? "before the first step" : "at the first step", l->most_rate, l->most_rate / 10);
}

lac_status laci_loop_run(laci_trainer *trainer, const laci_dataset *set,
                         const laci_loop_options *options, const laci_loop_hooks *hooks,
                         laci_loop_result *result, lac_error *err) {
  laci_loop l = {.trainer = trainer,
                 .set = set,
                 .options = options,
                 .hooks = hooks,
                 .result = result,
                 .comm = options->share ? options->share->comm : NULL,
                 .compared = -1,
                 .first_loss = NAN,
                 .first_score = NAN,
                 .best_score = NAN,
                 .best_top1 = -1,
                 .best_top5 = NAN};
  *result = (laci_loop_result){.loss = NAN, .best_top1 = -1, .best_top5 = NAN};
  lac_status st = laci_loop_allocate_state(&l, err);
  if (!st) st = laci_loop_recover_checkpoint(&l, err);
  result->first_step = l.step;
  laci_loop_event begin = {.kind = LACI_LOOP_BEGIN};
  if (!st) st = report_event(&l, &begin, err);
  if (!st) st = run_loop(&l, err);
  if (st == LAC_INTERRUPTED) st = end_interrupted_run(&l, err);
  else if (st && (l.stopped || st == LAC_PEER)) st = end_stopped_run(&l, st, err);
  if (!st && !options->eval_only)
    st = laci_comm_agree_on_status(l.comm, laci_loop_check_finite(&l, err), err);
  if (!st) warn_if_diverged(&l);
  if (!st)
    laci_trainer_swap_average(trainer); /* the moving averages are the result of the training */
  if (!st) laci_loop_restore_best_weights(&l);
  if (!st && l.trace) st = laci_trace_collect_json(l.trace, l.comm, &result->trace, err);
  result->step = l.step;
  result->best_top1 = l.best_top1;
  result->best_top5 = l.best_top5;
  result->best_step = l.best_step;
  result->reached = has_reached_threshold(&l);
  laci_loop_clear_state(&l);
  return st;
}
