/* SPDX-License-Identifier: Apache-2.0
 * Runs stages one after the other, each for one micro-batch after the other. */
#include "engine/cpu/microbatch/microbatch_in.h"

/** A watch of one stage's steps that reports to the caller's watch of all stages. */
typedef struct stage_watch {
  const laci_engine_watch *all;
  size_t first_step;
} stage_watch;

static lac_status report_progress_of_stage(void *context, size_t step, lac_error *err) {
  const stage_watch *w = context;
  return w->all->after_step(w->all->context, w->first_step + step, err);
}

/** Addresses of what a micro-batch reads and writes, as the arguments of laci_net_run. */
typedef struct stage_ports {
  const void *const *inputs;
  void *const *outputs;
} stage_ports;

/** Runs one micro-batch of a stage that is watched. Adds the seconds of its steps to those of the
 * earlier micro-batches. Calls watch->after_step when a step has run for all micro-batches. */
static lac_status run_watched_micro_batch(laci_microbatches *stages, const laci_stage *s,
                                          int64_t micro_batch, stage_ports ports,
                                          const laci_engine_watch *watch, lac_error *err) {
  stage_watch own = {.all = watch, .first_step = s->first_step};
  double *sums = watch->seconds ? watch->seconds + s->first_step : NULL;
  const bool first = micro_batch == 0, last = micro_batch == s->micro_batches - 1;
  const laci_engine_watch mine = {
      .begins = watch->begins && first ? watch->begins + s->first_step : NULL,
      .seconds = !sums || first ? sums : stages->seconds,
      .after_step = watch->after_step && last ? report_progress_of_stage : NULL,
      .context = &own,
      .ignores_interrupt = watch->ignores_interrupt,
  };
  lac_status st = laci_net_run(s->net, ports.inputs, ports.outputs, &mine, err);
  for (size_t at = 0; !st && sums && !first && at < s->n_steps; at++) {
    sums[at] += stages->seconds[at];
  }
  return st;
}

static lac_status run_micro_batch(laci_microbatches *stages, const laci_stage *s,
                                  int64_t micro_batch, stage_ports ports,
                                  const laci_engine_watch *watch, lac_error *err) {
  return watch ? run_watched_micro_batch(stages, s, micro_batch, ports, watch, err)
               : laci_net_run(s->net, ports.inputs, ports.outputs, NULL, err);
}

static bool are_checked_values_finite(const laci_stage *s) {
  return !laci_net_suspect_value(s->net);
}

/** Runs all micro-batches of a stage that is not the last one. from: the stage's input, for the
 * whole batch. */
static lac_status run_micro_batches(laci_microbatches *stages, const laci_stage *s,
                                    const uint8_t *from, const laci_engine_watch *watch,
                                    lac_error *err) {
  lac_status st = LAC_OK;
  for (int64_t micro_batch = 0;
       micro_batch < s->micro_batches && !st && (micro_batch == 0 || are_checked_values_finite(s));
       micro_batch++) {
    const void *in = from + (size_t)micro_batch * s->bytes_read;
    void *out = s->written + (size_t)micro_batch * s->bytes_written;
    st = run_micro_batch(stages, s, micro_batch, (stage_ports){&in, &out}, watch, err);
  }
  return st;
}

lac_status laci_microbatches_run(laci_microbatches *stages, const void *const *inputs,
                                 void *const *outputs, const laci_engine_watch *watch,
                                 lac_error *err) {
  const laci_stage *last = laci_microbatches_last_stage(stages);
  if (stages->n == 1) {
    lac_status st = laci_net_run(last->net, inputs, outputs, watch, err);
    if (st || are_checked_values_finite(last)) return st;
    return laci_microbatches_run_careful(stages, last, inputs, outputs, watch, err);
  }
  const void *from = inputs[0];
  for (const laci_stage *s = stages->stages; s < last; s++) {
    lac_status st = run_micro_batches(stages, s, from, watch, err);
    if (!st && !are_checked_values_finite(s))
      st = laci_microbatches_run_careful(stages, s, inputs, outputs, watch, err);
    if (st || !are_checked_values_finite(s)) return st;
    from = s->written;
  }
  /* inputs[0] is read only if the part needs the shape of the graph's input */
  const void *const read[] = {from, inputs[0]};
  lac_status st = run_micro_batch(stages, last, 0, (stage_ports){read, outputs}, watch, err);
  if (st || are_checked_values_finite(last)) return st;
  return laci_microbatches_run_careful(stages, last, inputs, outputs, watch, err);
}
