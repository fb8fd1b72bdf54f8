/* SPDX-License-Identifier: Apache-2.0
 * Prints the predicted time of a pruned network. If the prediction uses times measured on another
 * kind of processor, only the ratio to the dense network's time is printed. */
#include "predicted.h"

#include "base/plural.h"
#include "terminal.h"

enum { TEXT = 1024 };

static void print_predicted_time(const lac_prediction *p, FILE *out) {
  const double times = p->dense_seconds / p->pruned_seconds;
  const char *sizes = p->assumed_sizes ? ", sizes assumed" : "";
  if (p->costs_known)
    terminal_print_sentence(out,
                            "predicted with %d thread%s%s: %.3g ms dense, %.3g ms pruned, %.2f "
                            "times as fast",
                            p->threads, laci_plural(p->threads), sizes, 1e3 * p->dense_seconds,
                            1e3 * p->pruned_seconds, times);
  else
    terminal_print_sentence(out,
                            "predicted with %d thread%s%s: %.2f times as fast as dense, by figures "
                            "of another processor",
                            p->threads, laci_plural(p->threads), sizes, times);
}

static void print_layer_counts(const lac_prediction *p, FILE *out) {
  char text[TEXT];
  const int n = p->n_sparse + p->n_dense;
  size_t used = (size_t)snprintf(text, sizeof text, "%d of %d pruned layer%s will run as sparse",
                                 p->n_sparse, n, laci_plural(n));
  for (int r = 0; r < p->n_reasons && used < sizeof text; r++)
    used += (size_t)snprintf(text + used, sizeof text - used, "; %d will not: %s",
                             p->reasons[r].n_layers, p->reasons[r].reason);
  terminal_print_sentence(out, "%s", text);
}

void prediction_print(const lac_report *report, FILE *out) {
  const lac_prediction *p = report->prediction;
  if (!p) return;
  if (p->multiplications > 0)
    terminal_print_sentence(out, "%.1f%% of the multiplications are pruned",
                            100 * (double)p->multiplications_pruned / (double)p->multiplications);
  if (p->refusal || !(p->pruned_seconds > 0)) {
    terminal_print_sentence(out, "no time is predicted: %s",
                            p->refusal ? p->refusal : "the plan has no steps");
    return;
  }
  print_predicted_time(p, out);
  print_layer_counts(p, out);
}
