/* SPDX-License-Identifier: Apache-2.0
 * The order inside a turn matters: evaluation first, then the checkpoint, which says that it was
 * done, then the step. A checkpoint of a run that was interrupted in an evaluation does not say so,
 * and that evaluation is made when the run goes on. loop_state.c keeps and brings back. */
#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/loop_in.h"
#include "train/trainer.h"

/** Whether a multiple of `every` lies in (from, to]. */
static bool crosses(int64_t from, int64_t to, int64_t every) {
  return every > 0 && to / every > from / every;
}

static bool reached(const laci_loop *l) {
  return l->options->stop_threshold >= 0 && l->best_top1 >= l->options->stop_threshold;
}

static bool is_over(const laci_loop *l) { return l->step >= l->options->steps || reached(l); }

static lac_status report(const laci_loop *l, laci_loop_event *event, lac_error *err) {
  event->step = l->step;
  event->epoch = l->step / l->options->steps_per_epoch;
  event->steps = l->options->steps;
  return l->hooks->on_event ? l->hooks->on_event(l->hooks->context, event, err) : LAC_OK;
}

/* ---- Evaluation and checkpoints ---- */

/** What the network scores. Numbers that are none are the run's own fault, and not worth keeping;
 * anything else that fails leaves it as it is. */
static lac_status score_now(laci_loop *l, laci_loop_score *score, lac_error *err) {
  lac_status st = l->hooks->evaluate(l->hooks->context, score, err);
  l->stopped = st && st != LAC_BAD_VALUE;
  return st;
}

static lac_status evaluate_held(laci_loop *l, lac_error *err) {
  laci_loop_score score = {0};
  lac_status st = score_now(l, &score, err);
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
    st = laci_loop_keep_best(l, err);
  }
  laci_loop_event event = {.kind = LACI_LOOP_SCORE, .score = score, .is_best = is_best};
  return st ? st : report(l, &event, err);
}

/** The averages, where they are kept, stand for the weights meanwhile. */
static lac_status evaluate(laci_loop *l, lac_error *err) {
  lac_status st = laci_loop_check_finite(l, err);
  if (st) return st;
  laci_trainer_exchange_average(l->trainer);
  st = evaluate_held(l, err);
  laci_trainer_exchange_average(l->trainer);
  return st;
}

/** What the steps begin from. It is no result of theirs: nothing but the event remains of it. */
static lac_status evaluate_first(laci_loop *l, lac_error *err) {
  laci_loop_event event = {.kind = LACI_LOOP_SCORE};
  lac_status st = score_now(l, &event.score, err);
  return st ? st : report(l, &event, err);
}

static lac_status save(laci_loop *l, lac_error *err) {
  lac_status st = laci_loop_save(l, err);
  laci_loop_event event = {.kind = LACI_LOOP_SAVED};
  return st ? st : report(l, &event, err);
}

static lac_status do_what_is_due(laci_loop *l, lac_error *err) {
  const laci_loop_options *o = l->options;
  bool ends = l->step >= o->steps;
  if (!ends && l->step % o->steps_per_loop != 0) return LAC_OK;
  lac_status st = LAC_OK;
  bool scores = l->hooks->evaluate && l->evaluated < l->step &&
                (ends || crosses(l->evaluated, l->step, o->eval_every));
  int64_t best_before = l->best_step;
  if (scores) st = evaluate(l, err);
  if (st || !o->folder) return st;
  /* A best one is saved at once: the checkpoint that names it must be able to find it. */
  bool found_best = o->keep_best && l->best_step != best_before;
  bool saves = is_over(l) || found_best || crosses(l->saved, l->step, o->checkpoint_every);
  saves = saves && l->saved < l->step;
  /* One of this step may be there, left by an interrupted evaluation, which is now made. */
  saves = saves || (scores && l->saved == l->step);
  return saves ? save(l, err) : LAC_OK;
}

/* ---- A step ---- */

static lac_status fail_loss(const laci_loop *l, double loss, lac_error *err) {
  return laci_fail(err, LAC_BAD_VALUE,
                   "step %" PRId64 ": the loss is %g; a lower rate or a warm-up may help%s",
                   l->step + 1, loss, laci_loop_saved_text(l));
}

/** Gradients of all batches of the step; *loss is their mean. */
static lac_status run_batches(laci_loop *l, double *loss, lac_error *err) {
  double sum = 0;
  for (int k = 0; k < l->options->accumulate; k++) {
    const float *images, *labels;
    float part = 0;
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    lac_status st = laci_feed_take(l->feed, &images, &labels, err);
    l->stopped = st != LAC_OK;
    if (!st) st = laci_trainer_batch(l->trainer, images, labels, &part, NULL, err);
    if (st) return st;
    if (!isfinite(part)) return fail_loss(l, (double)part, err);
    sum += (double)part;
  }
  *loss = sum / l->options->accumulate;
  return LAC_OK;
}

static void measure(laci_loop *l, double seconds) {
  const double weight = l->seconds_a_step > 0 ? 0.1 : 1; /* a running mean */
  l->result->step_seconds += seconds;
  l->seconds_a_step += weight * (seconds - l->seconds_a_step);
  l->result->images_per_second =
      l->seconds_a_step > 0
          ? (double)l->options->feed.batch * l->options->accumulate / l->seconds_a_step
          : 0;
}

static lac_status take_step(laci_loop *l, lac_error *err) {
  const laci_loop_options *o = l->options;
  double begin = laci_clock_seconds(), loss = 0;
  memcpy(l->statistics_before, l->statistics, (size_t)l->n_statistics * sizeof(float));
  lac_status st = run_batches(l, &loss, err);
  if (st) { /* nothing of the step remains */
    memcpy(l->statistics, l->statistics_before, (size_t)l->n_statistics * sizeof(float));
    return st;
  }
  double rate = laci_schedule_rate(&o->schedule, l->step);
  laci_trainer_update(l->trainer, rate);
  l->step++;
  l->result->loss = loss;
  measure(l, laci_clock_seconds() - begin);
  laci_progress("train", l->step, o->steps);
  laci_loop_event event = {.kind = LACI_LOOP_STEP,
                           .loss = loss,
                           .rate = rate,
                           .images_per_second = l->result->images_per_second,
                           .seconds_left = l->seconds_a_step * (double)(o->steps - l->step)};
  return report(l, &event, err);
}

/* ---- The run ---- */

static lac_status go(laci_loop *l, lac_error *err) {
  if (l->options->eval_only) return evaluate(l, err);
  lac_status st = LAC_OK;
  if (l->options->eval_first && l->hooks->evaluate && l->step == 0) st = evaluate_first(l, err);
  if (!st) {
    st = laci_feed_create(l->set, &l->options->feed, l->step * l->options->accumulate, &l->feed,
                          err);
  }
  while (!st) {
    st = do_what_is_due(l, err);
    if (st || is_over(l)) break;
    st = take_step(l, err);
  }
  /* Where an earlier run did all, its end is looked at once more, to report it. */
  bool idle = l->step == l->result->first_step && !l->result->evaluated;
  return !st && idle && l->hooks->evaluate ? evaluate(l, err) : st;
}

/** Saves what the end of the run would lose. */
static lac_status save_steps(laci_loop *l, lac_error *err) {
  const laci_loop_options *o = l->options;
  return o->folder && !o->eval_only && l->saved < l->step ? save(l, err) : LAC_OK;
}

static lac_status end_interrupted(laci_loop *l, lac_error *err) {
  if (l->options->eval_only) return LAC_INTERRUPTED;
  lac_status st = save_steps(l, err);
  if (st) return st;
  return laci_fail(err, LAC_INTERRUPTED, "interrupted after step %" PRId64 "%s", l->step,
                   laci_loop_saved_text(l));
}

/** An image that cannot be read, say: once it is mended, a run goes on from here. The first cause
 * is what is reported. */
static lac_status end_stopped(laci_loop *l, lac_status cause, lac_error *err) {
  char text[sizeof err->text];
  if (save_steps(l, NULL) || !err) return cause;
  (void)snprintf(text, sizeof text, "%s", err->text);
  return laci_fail(err, cause, "%s%s", text, laci_loop_saved_text(l));
}

lac_status laci_loop_run(laci_trainer *trainer, const laci_dataset *set,
                         const laci_loop_options *options, const laci_loop_hooks *hooks,
                         laci_loop_result *result, lac_error *err) {
  laci_loop l = {.trainer = trainer,
                 .set = set,
                 .options = options,
                 .hooks = hooks,
                 .result = result,
                 .best_top1 = -1,
                 .best_top5 = NAN};
  *result = (laci_loop_result){.loss = NAN, .best_top1 = -1, .best_top5 = NAN};
  lac_status st = laci_loop_prepare(&l, err);
  if (!st && options->recover) st = laci_loop_recover(&l, err);
  result->first_step = l.step;
  laci_loop_event begin = {.kind = LACI_LOOP_BEGIN};
  if (!st) st = report(&l, &begin, err);
  if (!st) st = go(&l, err);
  if (st == LAC_INTERRUPTED) st = end_interrupted(&l, err);
  else if (st && l.stopped) st = end_stopped(&l, st, err);
  if (!st && !options->eval_only) st = laci_loop_check_finite(&l, err);
  if (!st) laci_trainer_exchange_average(trainer); /* it is what the training was for */
  if (!st) laci_loop_use_best(&l);
  result->step = l.step;
  result->best_top1 = l.best_top1;
  result->best_top5 = l.best_top5;
  result->best_step = l.best_step;
  result->reached = reached(&l);
  laci_loop_clear_state(&l);
  return st;
}
