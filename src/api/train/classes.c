/* SPDX-License-Identifier: Apache-2.0
 * Writes the meaning of a network's outputs into its metadata, so that an evaluation numbers the
 * class folders as the training did. */
#include <stdio.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/train/plan_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "data/dataset.h"
#include "graph/graph.h"

/* Can the name be a line of metadata, which is UTF-8? */
static bool is_single_line(const char *name) {
  uint32_t code = 0;
  size_t n;
  for (; name && *name; name += n) {
    n = laci_utf8_next(name, &code);
    if (n == 0 || code == '\n') return false;
  }
  return name != NULL;
}

/* Logs that ImageNet's class numbers are used although some of its classes are missing. */
static void log_absent_classes(const laci_dataset *set) {
  const int n = laci_dataset_count_classes(set);
  bool *there = laci_alloc((size_t)n, sizeof *there);
  int n_there = 0;
  for (int64_t at = 0; there && at < laci_dataset_count(set); at++) {
    bool *one = &there[laci_dataset_label(set, at)];
    n_there += !*one;
    *one = true;
  }
  if (there && n_there < n)
    laci_log(LAC_LOG_WARNING,
             "the folders are %d of ImageNet's %d classes by their WordNet ids, whose numbers they "
             "keep: the network has %d outputs, %d of which no image trains; a list of classes "
             "gives it one output per line",
             n_there, n, n, n - n_there);
  laci_free(there);
}

static void log_class_meanings(const laci_training *t) {
  const laci_dataset *set = t->plan->set;
  const laci_numbering by = laci_dataset_numbering(set);
  if (t->plan->quiet || t->options->eval_only) return;
  if (by == LACI_NUMBERED_BY_WORDNET) log_absent_classes(set);
  if (t->plan->known && by == LACI_NUMBERED_IN_ORDER)
    laci_log(LAC_LOG_INFO,
             "the data have other classes than the network was trained on: its outputs become "
             "those of the data, in the order of their folders");
}

/* Stores the names of the folders as the meaning of the network's outputs. For ImageNet's ids, and
 * for data with class numbers, no names are needed, and names of former classes are removed, since
 * they would be wrong. */
lac_status laci_training_store_class_names(const laci_training *t, lac_error *err) {
  const laci_dataset *set = t->plan->set;
  laci_graph *graph = t->model->graph;
  const laci_numbering by = laci_dataset_numbering(set);
  const int n = laci_dataset_count_classes(set);
  size_t size = 1;
  log_class_meanings(t);
  if (t->options->eval_only) return LAC_OK;
  graph->class_names = NULL;
  if (by == LACI_NUMBERED_BY_DATA || by == LACI_NUMBERED_BY_WORDNET) return LAC_OK;
  for (int k = 0; k < n; k++) {
    const char *name = laci_dataset_class_folder(set, k);
    if (!is_single_line(name)) return LAC_OK;
    size += strlen(name) + 1;
  }
  char *text = laci_arena_alloc(graph->arena, size, 1), *to = text;
  if (!text) return laci_fail_memory(err, "names of classes");
  for (int k = 0; k < n; k++)
    to += sprintf(to, "%s%s", k ? "\n" : "", laci_dataset_class_folder(set, k));
  graph->class_names = text;
  return LAC_OK;
}
