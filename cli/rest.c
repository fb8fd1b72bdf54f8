/* SPDX-License-Identifier: Apache-2.0
 * Counting and naming layers that are pruned, are going to be, or stay dense. */
#include "rest.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "story.h"

enum { MOST_NAMES = 3, NAMES_BYTES = 512 };

typedef enum kind { KIND_PRUNED, KIND_REST, KIND_ZERO, KIND_NONE } kind;

static kind kind_of(const lac_layer *layer) {
  if (!layer->eligible) return KIND_NONE;
  if (layer->pruned) return KIND_PRUNED;
  return layer->n_elements > 0 && layer->n_zeros == layer->n_elements ? KIND_ZERO : KIND_REST;
}

lac_status rest_check(const arguments *args, bool sparse, lac_error *err) {
  bool keep_given = args->given.keep_masks, rest_given = args->given.prune_rest;
  if (keep_given && rest_given && args->keep_masks == args->prune_rest) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--keep-masks and --prune-rest: one of them");
  }
  const char *idle = keep_given      ? "keep-masks"
                     : rest_given    ? "prune-rest"
                     : args->include ? "include"
                     : args->exclude ? "exclude"
                                     : NULL;
  if (sparse || !idle) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "--%s without --sparse: all weights are trained", idle);
}

bool rest_stays(const arguments *args) {
  return args->given.keep_masks ? args->keep_masks : !args->prune_rest;
}

rest_count rest_of(const lac_report *report) {
  int n[KIND_NONE + 1] = {0};
  for (int l = 0; l < report->n_layers; l++) n[kind_of(&report->layers[l])]++;
  return (rest_count){.n_pruned = n[KIND_PRUNED], .n_rest = n[KIND_REST], .n_zero = n[KIND_ZERO]};
}

/* ": fc, head" where they are few; else nothing. */
static const char *names_of(const lac_report *report, kind wanted, char text[NAMES_BYTES]) {
  int n = 0;
  size_t used = 0;
  text[0] = 0;
  for (int l = 0; l < report->n_layers; l++) {
    if (kind_of(&report->layers[l]) != wanted) continue;
    const char *name = report->layers[l].name;
    if (++n > MOST_NAMES || used + strlen(name) + 3 > NAMES_BYTES) return "";
    used += (size_t)sprintf(text + used, "%s%s", n == 1 ? ": " : ", ", name);
  }
  return text;
}

void rest_tell(const lac_report *report, bool stays) {
  rest_count n = rest_of(report);
  char names[NAMES_BYTES];
  if (n.n_pruned && n.n_rest) {
    bool one = n.n_pruned == 1, other = n.n_rest == 1;
    story_tell("%d layer%s hold%s %d:%d and keep%s %s; %d %s%s", n.n_pruned, one ? "" : "s",
               one ? "s" : "", report->pattern_n, report->pattern_m, one ? "s" : "",
               one ? "its mask" : "their masks", n.n_rest,
               stays   ? other ? "stays dense" : "stay dense"
               : other ? "is pruned"
                       : "are pruned",
               names_of(report, KIND_REST, names));
  }
  if (n.n_zero) {
    story_tell("%d layer%s all zero, so that no magnitude tells what to keep, and stay%s dense%s",
               n.n_zero, n.n_zero == 1 ? " is" : "s are", n.n_zero == 1 ? "s" : "",
               names_of(report, KIND_ZERO, names));
  }
}
