/* SPDX-License-Identifier: Apache-2.0
 * The plan as text: one line per step with its kernel, and the memory that it takes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/native/native.h"

typedef struct writer {
  char *text; /* NULL: only the length is counted */
  size_t used, capacity;
} writer;

static void append_text(writer *w, const char *format, ...) LAC_PRINTF(2, 3);
static void append_text(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(w->text ? w->text + w->used : NULL, w->text ? w->capacity - w->used : 0, format,
                    args);
  va_end(args);
  if (n > 0) w->used += (size_t)n;
}

/* Returns the name of the step's kernel. A step without one is a copy by code of this library. */
static const char *kernel_name_or_copy(const laci_net_step *step) {
  return step->kernel && step->kernel[0] ? step->kernel : "own";
}

/* Widths, in characters, of the text's columns before the shape: what the step computes, and its
 * kernel. */
typedef struct widths {
  int what, kernel;
} widths;

static widths find_column_widths(const laci_net *net) {
  widths wide = {.what = 28, .kernel = 24};
  for (size_t at = 0; at < net->n_steps; at++) {
    int what = (int)strlen(net->steps[at].what),
        kernel = (int)strlen(kernel_name_or_copy(&net->steps[at]));
    if (what > wide.what) wide.what = what;
    if (kernel > wide.kernel) wide.kernel = kernel;
  }
  return wide;
}

static void write_step_line(writer *w, const laci_net *net, size_t at, const widths *wide) {
  const laci_net_step *step = &net->steps[at];
  char shape[128] = "";
  if (step->shown >= 0) laci_shape_text(&net->tensors[step->shown].shape, shape, sizeof shape);
  append_text(w, "%4zu  %-*s %-*s %-26s %s%s\n", at, wide->what, step->what, wide->kernel,
              kernel_name_or_copy(step), shape, step->node ? step->node->name : "",
              step->recomputed ? " (once more)" : "");
}

static void write_all_step_lines(writer *w, const laci_net *net) {
  widths wide = find_column_widths(net);
  size_t n_plain = 0, n_sparse = 0;
  append_text(w, "step  %-*s %-*s %-26s node\n", wide.what, "what", wide.kernel, "kernel",
              "result");
  for (size_t at = 0; at < net->n_steps; at++) {
    write_step_line(w, net, at, &wide);
    n_plain += net->steps[at].plain;
    n_sparse += net->steps[at].sparse;
  }
  laci_native_refusal refusal;
  for (int at = 0; laci_native_find_next_refusal(net, &at, &refusal);) {
    append_text(w, "%s: not by %s: %s\n", refusal.node, refusal.algorithm, refusal.why);
  }
  append_text(w, "%zu step%s, %zu of them by the plain operator", net->n_steps,
              laci_plural((int64_t)net->n_steps), n_plain);
  if (n_sparse > 0) append_text(w, ", %zu by sparse kernels", n_sparse);
  append_text(w, "; %s, %d thread%s; arena %.1f MB, weights %.1f MB\n",
              net->plan.bf16 ? "bf16" : "f32", net->n_threads, laci_plural(net->n_threads),
              (double)net->plan.arena_bytes / 1e6, (double)net->plan.weight_bytes / 1e6);
}

void laci_net_write_text(laci_net *net) {
  writer count = {0};
  if (net->plan.status) return;
  write_all_step_lines(&count, net);
  writer w = {.capacity = count.used + 1};
  w.text = net->text = laci_plan_alloc(&net->plan, w.capacity, 1);
  if (w.text) write_all_step_lines(&w, net);
}
