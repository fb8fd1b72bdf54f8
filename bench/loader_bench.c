/* SPDX-License-Identifier: Apache-2.0
 * Images a processor second on one core: what training reads, a random part resized to the crop,
 * and what evaluation reads, the middle. bench/loader.py compares it with torchvision.
 *
 *     loader_bench FOLDER [--rounds N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/augment.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/prepare.h"

enum { MOST_ROUNDS = 1000 };

typedef struct work {
  const laci_dataset *set;
  laci_preparer *preparer;
  laci_image scratch[2];
  float *out;
} work;

static double processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/** Seconds for all images once; round: the number of the run, for the random numbers. */
static double train_once(work *w, int round, lac_error *err) {
  double begin = processor_seconds();
  int64_t n = laci_dataset_count(w->set);
  for (int64_t at = 0; at < n; at++) {
    laci_sample_change change = {
        .image = at, .augment = laci_dataset_augment(w->set), .sample = (uint64_t)(round * n + at)};
    if (laci_dataset_read_changed_sample(w->set, &change, w->preparer, w->scratch, w->out, err)) {
      return -1;
    }
  }
  return processor_seconds() - begin;
}

static double evaluate_once(work *w, lac_error *err) {
  double begin = processor_seconds();
  for (int64_t at = 0; at < laci_dataset_count(w->set); at++) {
    if (laci_dataset_read_sample(w->set, at, w->preparer, w->scratch, w->out, err)) return -1;
  }
  return processor_seconds() - begin;
}

static int measure(work *w, int rounds, lac_error *err) {
  double best[2] = {1e30, 1e30};
  for (int round = 0; round < rounds; round++) {
    double train = train_once(w, round, err), evaluate = train < 0 ? -1 : evaluate_once(w, err);
    if (evaluate < 0) return 1;
    if (train < best[0]) best[0] = train;
    if (evaluate < best[1]) best[1] = evaluate;
  }
  double n = (double)laci_dataset_count(w->set);
  printf("training %.1f\nevaluation %.1f\n", n / best[0], n / best[1]);
  return 0;
}

int main(int argc, char **argv) {
  int rounds = argc == 4 && strcmp(argv[2], "--rounds") == 0 ? atoi(argv[3]) : 5;
  laci_dataset *set = NULL;
  lac_error err = {0};
  if ((argc != 2 && argc != 4) || rounds < 1 || rounds > MOST_ROUNDS) {
    fprintf(stderr, "usage: loader_bench FOLDER [--rounds N]\n");
    return 2;
  }
  laci_dataset_options options = {.part = LACI_PART_TRAIN, .quiet = true};
  lac_status st = laci_dataset_open(argv[1], &options, &set, &err);
  work w = {.set = set};
  int failed = 1;
  if (!st) {
    laci_preprocessing usual = laci_dataset_preprocessing(set);
    w.out = malloc(laci_preprocessing_sample_size(&usual) * sizeof *w.out);
    st = laci_preparer_create(&usual, &w.preparer, &err);
    if (!st && w.out) failed = measure(&w, rounds, &err);
  }
  if (failed) fprintf(stderr, "loader_bench: %s\n", err.text);
  for (int k = 0; k < 2; k++) laci_image_clear(&w.scratch[k]);
  laci_preparer_destroy(w.preparer);
  laci_dataset_close(set);
  free(w.out);
  return failed;
}
