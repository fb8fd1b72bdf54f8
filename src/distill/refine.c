/* SPDX-License-Identifier: Apache-2.0
 * Runs training steps for a given time, and keeps the result if its error is lower than before. */
#include "distill/refine.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "cpu/pool.h"
#include "distill/reconstruct.h"
#include "distill/targets.h"
#include "graph/graph.h"
#include "graph/view.h"

enum { BATCH = 128, WARM_UP = 20, TIMED = 5, JUDGED_AT_ONCE = 32, MOST_TIMES = 160 };
/* Where a time is given, steps have fewer samples if fewer than LEAST_STEPS would fit into it. */
enum { LEAST_STEPS = 200, LEAST_BATCH = 8 };
/* A step takes about as long, for each sample, as this number of runs of one network. */
static const double RUNS_OF_STEP = 4;
static const double RATE = 1e-3, TIMED_SHARE = 0.08;
static const uint64_t MOST_KEPT = (uint64_t)1 << 30; /* limit of the bytes of samples and targets
                                                        that are kept in memory */

typedef struct job {
  const laci_weighted_graph *student, *teacher;
  const laci_calibration_samples *samples;
  const laci_refine_options *o;
  laci_refined *to;
  double start;
  double judge_seconds; /* duration of one comparison of outputs, in seconds */
  int64_t batch;
  laci_graph *views[2]; /* graphs of the student (0) and of the teacher (1) with their weights */
  laci_graph *result;   /* copy of the student that receives the weights after the steps */
  laci_reconstruct *reconstruct;
  laci_distill_targets *batches;
} job;

/* ---- Judging ---- */

/** Computes how much the candidate's outputs differ from the teacher's on the held-back samples. */
static lac_status judge_candidate(job *j, const laci_graph *candidate,
                                  laci_output_difference *difference, lac_error *err) {
  const laci_weighted_graph network = {.graph = candidate};
  const laci_shape *input = &candidate->values[candidate->inputs[0]].type.shape;
  const double start = laci_clock_seconds();
  int64_t batch = input->rank > 0 && input->dims[0] > 0 ? input->dims[0] : JUDGED_AT_ONCE;
  if (batch > j->o->n_held) batch = j->o->n_held;
  const laci_compare_options how = {.first = j->o->first_held,
                                    .n = j->o->n_held / batch * batch,
                                    .batch = batch,
                                    .pool = j->o->pool,
                                    .budget = j->o->budget};
  lac_status st = laci_compare_outputs(j->teacher, &network, j->samples, &how, difference, err);
  j->judge_seconds = laci_clock_seconds() - start;
  return st;
}

/* ---- Steps ---- */

static double compute_learning_rate(const job *j, int64_t step, int64_t steps) {
  const double pi = 3.14159265358979323846;
  double ramp = (double)(step + 1) / WARM_UP;
  double cosine = steps > 0 ? (1 + cos(pi * (double)step / (double)steps)) / 2 : 1;
  return (j->o->rate > 0 ? j->o->rate : RATE) * (ramp < cosine ? ramp : cosine);
}

/** Returns how many steps in all fit into the time, if `done` steps of `step_seconds` each were run
 * so far. Leaves time for judging the result. */
static int64_t count_steps_in_time(const job *j, int64_t done, double step_seconds) {
  double used = laci_clock_seconds() - j->start;
  double left = j->o->seconds - used - j->judge_seconds;
  int64_t more = left > 0 ? laci_clamp_to_int64(left / step_seconds) : 0;
  return done + more;
}

/* Halves the batch until LEAST_STEPS steps fit into the time, by the duration of the comparison. */
static void fit_batch_to_time(job *j) {
  const double left = j->o->seconds - 2 * j->judge_seconds,
               sample = RUNS_OF_STEP * j->judge_seconds / (2 * (double)j->o->n_held);
  if (!(j->o->seconds > 0) || j->o->steps > 0) return;
  while (j->batch > LEAST_BATCH && (double)j->batch * sample * LEAST_STEPS > left)
    j->batch = (j->batch + 1) / 2;
}

static lac_status run_one_training_step(job *j, int64_t step, int64_t steps, lac_error *err) {
  const float *images, *const *targets;
  float loss = 0;
  if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  lac_status st = laci_distill_targets_next_batch(j->batches, &images, &targets, err);
  if (!st) {
    st = laci_reconstruct_train_step(j->reconstruct, images, targets,
                                     compute_learning_rate(j, step, steps), &loss, err);
  }
  if (step == 0) j->to->loss_first = (double)loss;
  j->to->loss_last = (double)loss;
  return st;
}

static lac_status run_training_steps(job *j, lac_error *err) {
  double times[MOST_TIMES];
  int n_times = 0;
  int64_t steps = j->o->steps, step = 0;
  lac_status st = LAC_OK;
  for (; (steps == 0 || step < steps) && !st; step++) {
    double start = laci_clock_seconds();
    st = run_one_training_step(j, step, steps, err);
    double now = laci_clock_seconds();
    if (n_times < (int)(sizeof times / sizeof *times) && step > 0) times[n_times++] = now - start;
    bool enough =
        n_times >= TIMED && (now - j->start > TIMED_SHARE * j->o->seconds || step + 1 == WARM_UP);
    bool late = now - j->start > j->o->seconds;
    if (steps == 0 && (enough || late)) {
      steps = count_steps_in_time(j, step + 1,
                                  n_times > 0 ? laci_median(times, (size_t)n_times) : now - start);
      laci_log(LAC_LOG_INFO, "refining: %lld steps of %lld samples fit into %g s", (long long)steps,
               (long long)j->batch, j->o->seconds);
    }
    if (steps > 0) laci_progress("refining", step + 1, steps);
  }
  j->to->steps = step;
  j->to->batch = j->batch;
  j->to->step_seconds = laci_median(times, (size_t)n_times);
  return st;
}

/* ---- The result ---- */

/** Moves the bytes that the graph `from` owns (the changed weights) into the result. */
static void copy_weights_from(job *j, laci_graph *from) {
  for (int s = 0; s < from->n_stored; s++) {
    j->to->weights[s] = from->stored[s].owned;
    from->stored[s].owned = NULL;
  }
}

static lac_status keep_if_better(job *j, lac_error *err) {
  lac_status st = laci_graph_view_create(j->student->graph, j->student->weights, &j->result, err);
  if (!st) st = laci_reconstruct_store_student(j->reconstruct, j->result, err);
  if (!st) st = judge_candidate(j, j->result, &j->to->after, err);
  if (st) return st;
  j->to->kept = j->to->after.relative < j->to->before.relative;
  laci_log(LAC_LOG_DEBUG, "refined: error of outputs %.5g %%, before %.5g %%",
           100 * j->to->after.relative, 100 * j->to->before.relative);
  if (j->to->kept) copy_weights_from(j, j->result);
  return LAC_OK;
}

static lac_status refine_job_init(job *j, lac_error *err) {
  const laci_refine_options *o = j->o;
  const laci_shape *shape = &j->samples->shapes[0];
  laci_reconstruct_options how = {.masks = o->masks,
                                  .batch = j->batch,
                                  .engine = j->samples->engine,
                                  .threads = laci_pool_threads(o->pool),
                                  .bf16 = o->bf16,
                                  .dense_only = o->dense_only,
                                  .budget = o->budget};
  const laci_distill_targets_options batches = {.n = o->n_fitted,
                                                .batch = j->batch,
                                                .seed = o->seed,
                                                .most_bytes = MOST_KEPT,
                                                .pool = o->pool,
                                                .budget = o->budget};
  how.image.rank = shape->rank > 0 ? shape->rank - 1 : 0;
  for (int axis = 0; axis < how.image.rank; axis++) how.image.dims[axis] = shape->dims[axis + 1];
  lac_status st = laci_reconstruct_create(j->views[0], j->views[1], &how, &j->reconstruct, err);
  if (!st) st = laci_distill_targets_create(j->reconstruct, j->samples, &batches, &j->batches, err);
  return st;
}

static lac_status check_options(const job *j, lac_error *err) {
  const laci_refine_options *o = j->o;
  if (!(o->seconds > 0) && o->steps < 1)
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%g seconds and %lld steps of refinement: wanted one "
                     "of them above 0",
                     o->seconds, (long long)o->steps);
  if (j->student->graph->n_inputs != 1)
    return laci_fail(err, LAC_UNSUPPORTED, "the network has %d inputs; one is wanted for training",
                     j->student->graph->n_inputs);
  if (o->n_fitted < 1 || o->n_held < 1)
    return laci_fail(
        err, LAC_UNSUPPORTED,
        "%lld samples to refine with and %lld to judge by: wanted one of each at least",
        (long long)o->n_fitted, (long long)o->n_held);
  return LAC_OK;
}

lac_status laci_refine_towards_teacher(const laci_weighted_graph *student,
                                       const laci_weighted_graph *teacher,
                                       const laci_calibration_samples *samples,
                                       const laci_refine_options *options, laci_refined *refined,
                                       lac_error *err) {
  job j = {.student = student,
           .teacher = teacher,
           .samples = samples,
           .o = options,
           .to = refined,
           .start = laci_clock_seconds(),
           .batch = options->batch > 0 ? options->batch : BATCH};
  *refined = (laci_refined){.n_stored = student->graph->n_stored};
  if (j.batch > options->n_fitted) j.batch = options->n_fitted;
  lac_status st = check_options(&j, err);
  if (st) return st;
  refined->weights = laci_alloc((size_t)refined->n_stored + 1, sizeof *refined->weights);
  if (!refined->weights) st = laci_fail_memory(err, "refined weights");
  if (!st) st = laci_graph_view_create(student->graph, student->weights, &j.views[0], err);
  if (!st) st = laci_graph_view_create(teacher->graph, teacher->weights, &j.views[1], err);
  if (!st) st = judge_candidate(&j, j.views[0], &refined->before, err);
  if (!st) fit_batch_to_time(&j);
  if (!st) st = refine_job_init(&j, err);
  if (!st) st = run_training_steps(&j, err);
  if (!st) st = keep_if_better(&j, err);
  laci_distill_targets_destroy(j.batches);
  laci_reconstruct_destroy(j.reconstruct);
  for (int k = 0; k < 2; k++) laci_graph_view_destroy(j.views[k]);
  laci_graph_view_destroy(j.result);
  refined->seconds = laci_clock_seconds() - j.start;
  if (st) laci_refined_clear(refined);
  return st;
}

void laci_refined_clear(laci_refined *refined) {
  for (int s = 0; s < refined->n_stored && refined->weights; s++) laci_free(refined->weights[s]);
  laci_free(refined->weights);
  refined->weights = NULL;
}
