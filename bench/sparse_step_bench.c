/* SPDX-License-Identifier: Apache-2.0
 * A step of fine-tuning under fixed 2:4 masks, of a whole network: by dense kernels and by sparse
 * ones, alternately. A step is a batch, forward and backward, and the update. The least time of all
 * rounds counts; the median is shown next to it. --processor counts the processor time of all
 * threads instead of wall time, which other load changes less. --profile shares the steps of both
 * out among operators and kernels, the least time of each, by the clock; --check N takes N steps
 * with both and says how far weights and losses are apart (dense steps by one thread and by two are
 * as far apart, in f32); of bf16, also how far each of them is from dense steps of f32.
 *
 *     sparse_step_bench [--arch NAME] [--batch N] [--size N] [--threads N] [--rounds N]
 *                       [--dtype f32|bf16] [--processor] [--profile] [--check N] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "sparse/mask.h"
#include "train/trainer.h"

enum { DENSE, SPARSE, N_SIDES, EXACT = N_SIDES, N_TRAINERS }; /* EXACT: dense steps of f32 */
enum { MOST_ROUNDS = 256, MOST_KINDS = 256 };

static const char *const names[] = {"dense", "sparse", "f32"};

typedef struct options {
  const char *arch;
  int64_t batch, size; /* size: of images; 0: as usual */
  int threads, rounds, n_check;
  bool bf16, processor, profile;
} options;

typedef struct bench {
  laci_graph *model;
  uint8_t **masks; /* [n_stored]; NULL: not pruned */
  laci_engine_weight *weights;
  int n_weights;
  laci_trainer *sides[N_TRAINERS]; /* NULL: not asked for */
  float *images, *labels;
} bench;

static _Noreturn void die(const char *what) {
  (void)fprintf(stderr, "sparse_step_bench: %s\n", what);
  exit(1);
}

/* ---- What is trained ---- */

/** Of every convolution of enough channels the two largest of four neighbouring inputs. */
static void make_masks(bench *b) {
  const laci_graph *g = b->model;
  lac_error err = {0};
  b->masks = (uint8_t **)laci_alloc((size_t)g->n_stored, sizeof *b->masks);
  b->weights = laci_alloc((size_t)g->n_stored, sizeof *b->weights);
  if (!b->masks || !b->weights) die("no memory");
  for (int s = 0; s < g->n_stored; s++) {
    const laci_shape *shape = &g->stored[s].shape;
    if (shape->rank != 4 || shape->dims[1] % 4 != 0) continue;
    const int64_t taps = shape->dims[2] * shape->dims[3], n = laci_shape_count(shape);
    b->masks[s] = laci_alloc((size_t)n, 1);
    if (!b->masks[s]) die("no memory");
    for (int64_t at = 0; at < n / 4; at++) {
      static const uint8_t patterns[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
      const uint8_t *two = patterns[laci_rng_integer_below(1, (uint64_t)s, (uint64_t)at, 6)];
      const int64_t first = at / taps * 4 * taps + at % taps;
      for (int k = 0; k < 2; k++) b->masks[s][first + two[k] * taps] = 1;
    }
    b->weights[b->n_weights++] =
        (laci_engine_weight){.value = g->stored[s].value, .mask = b->masks[s]};
  }
  if (b->n_weights == 0) die("nothing to prune");
  (void)err;
}

static void make_trainer(bench *b, const options *o, int side) {
  lac_error err = {0};
  laci_trainer_options t = {.graph = {.batch = o->batch},
                            .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                            .run.threads = o->threads,
                            .run.bf16 = o->bf16 && side != EXACT,
                            .run.dense_only = side != SPARSE,
                            .weights = b->weights,
                            .n_weights = b->n_weights};
  if (laci_trainer_create(b->model, &t, &b->sides[side], &err)) die(err.text);
  const laci_training_graph *g = laci_trainer_graph(b->sides[side]);
  for (int p = 0; p < g->n_params; p++) {
    const uint8_t *mask = b->masks[g->params[p].stored];
    if (!mask) continue;
    laci_optimizer_set_mask(laci_trainer_optimizer(b->sides[side]), p, mask,
                            laci_trainer_weights(b->sides[side]));
  }
}

/** Images of noise, and every image its own class. */
static void make_batch(bench *b) {
  const laci_training_graph *g = laci_trainer_graph(b->sides[DENSE]);
  const int64_t pixels = laci_shape_count(&g->graph->values[g->images].type.shape);
  b->images = laci_alloc((size_t)pixels, sizeof *b->images);
  b->labels = laci_alloc((size_t)(g->batch * g->n_classes), sizeof *b->labels);
  if (!b->images || !b->labels) die("no memory");
  for (int64_t at = 0; at < pixels; at++) {
    b->images[at] = (float)(2 * laci_rng_unit_interval(1, 0, (uint64_t)at) - 1);
  }
  for (int64_t n = 0; n < g->batch; n++) b->labels[n * g->n_classes + n % g->n_classes] = 1;
}

static float take_step(bench *b, int side, double *update) {
  lac_error err = {0};
  float loss;
  if (laci_trainer_run_batch(b->sides[side], b->images, b->labels, &loss, NULL, &err))
    die(err.text);
  const double begin = laci_clock_seconds();
  if (laci_trainer_update(b->sides[side], 1e-3, &err)) die(err.text);
  if (update) *update = laci_clock_seconds() - begin;
  return loss;
}

/* ---- Times ---- */

static int by_size(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static double seconds_now(const options *o) {
  struct timespec now;
  if (!o->processor) return laci_clock_seconds();
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run_micro_batches(bench *b, const options *o) {
  static double seconds[N_SIDES][MOST_ROUNDS];
  for (int round = -1; round < o->rounds; round++) { /* one to warm up */
    for (int side = 0; side < N_SIDES; side++) {
      const double begin = seconds_now(o);
      (void)take_step(b, side, NULL);
      if (round >= 0) seconds[side][round] = seconds_now(o) - begin;
    }
  }
  for (int side = 0; side < N_SIDES; side++) {
    qsort(seconds[side], (size_t)o->rounds, sizeof **seconds, by_size);
    (void)printf("%-6s %9.1f ms  (median %.1f)  planned %.0f MB, %d sparse steps\n", names[side],
                 1e3 * seconds[side][0], 1e3 * seconds[side][o->rounds / 2],
                 (double)laci_trainer_count_memory_bytes(b->sides[side]) / 1048576,
                 laci_engine_sparse_step_count(laci_trainer_engine(b->sides[side])));
  }
  (void)printf("ratio %.3f  (medians %.3f)\n", seconds[DENSE][0] / seconds[SPARSE][0],
               seconds[DENSE][o->rounds / 2] / seconds[SPARSE][o->rounds / 2]);
}

typedef struct kind { /* of steps: the same operator by the same kernel */
  char name[160];
  double seconds;
  int n;
} kind;

static int by_seconds(const void *a, const void *b) {
  const kind *x = a, *y = b;
  return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static kind *kind_of(kind *kinds, int *n_kinds, const char *name) {
  int at = 0;
  while (at < *n_kinds && strcmp(kinds[at].name, name) != 0) at++;
  if (at == *n_kinds && *n_kinds < MOST_KINDS - 1) {
    (void)snprintf(kinds[(*n_kinds)++].name, sizeof kinds->name, "%s", name);
  }
  return &kinds[at];
}

static void profile(bench *b, const options *o, int side) {
  static kind kinds[MOST_KINDS];
  const laci_engine *engine = laci_trainer_engine(b->sides[side]);
  const size_t n_steps = laci_engine_step_count(engine);
  double *now = laci_alloc(n_steps, sizeof *now), *least = laci_alloc(n_steps, sizeof *least);
  double update, least_update = INFINITY, sum = 0;
  int n_kinds = 0;
  if (!now || !least) die("no memory");
  memset(kinds, 0, sizeof kinds);
  laci_trainer_record_step_times(b->sides[side], now);
  for (int round = 0; round < o->rounds; round++) {
    (void)take_step(b, side, &update);
    least_update = fmin(least_update, update);
    for (size_t at = 0; at < n_steps; at++) {
      if (round == 0 || now[at] < least[at]) least[at] = now[at];
    }
  }
  laci_trainer_record_step_times(b->sides[side], NULL);
  for (size_t at = 0; at < n_steps; at++) {
    char name[160];
    const laci_engine_step info = laci_engine_step_info(engine, at);
    (void)snprintf(name, sizeof name, "%s, %s", info.what, info.kernel);
    kind *k = kind_of(kinds, &n_kinds, name);
    k->seconds += least[at];
    k->n++;
  }
  kind *k = kind_of(kinds, &n_kinds, "update");
  k->seconds = least_update;
  k->n = 1;
  qsort(kinds, (size_t)n_kinds, sizeof *kinds, by_seconds);
  for (int at = 0; at < n_kinds; at++) sum += kinds[at].seconds;
  (void)printf("%s, %.1f ms in all\n", names[side], 1e3 * sum);
  for (int at = 0; at < n_kinds && kinds[at].seconds * 1000 > sum; at++) {
    (void)printf("  %-60s %4d %9.1f ms\n", kinds[at].name, kinds[at].n, 1e3 * kinds[at].seconds);
  }
  laci_free(now);
  laci_free(least);
}

/* ---- Results ---- */

/** How far a side's parameters are from another's. */
typedef struct difference {
  double of_length; /* of all, as a share of their length */
  double worst[2];  /* of a tensor, as a share of its largest: weights, vectors */
  const char *where[2];
} difference;

static difference compare(const bench *b, int from, int to) {
  const laci_training_graph *g = laci_trainer_graph(b->sides[DENSE]);
  const laci_parameter *parameters = laci_trainer_parameters(b->sides[DENSE]);
  const float *first = laci_trainer_weights(b->sides[from]);
  const float *second = laci_trainer_weights(b->sides[to]);
  difference d = {.where = {"", ""}};
  double apart = 0, length = 0;
  for (int p = 0; p < g->n_params; p++) {
    double largest = 0, off = 0;
    for (int64_t at = parameters[p].offset; at < parameters[p].offset + parameters[p].count; at++) {
      largest = fmax(largest, fabs((double)first[at]));
      const double by = (double)second[at] - (double)first[at];
      off = fmax(off, fabs(by));
      apart += by * by;
      length += (double)first[at] * (double)first[at];
    }
    const int vector = parameters[p].is_vector;
    if (largest > 0 && !(off / largest <= d.worst[vector])) {
      d.worst[vector] = off / largest;
      d.where[vector] = parameters[p].name;
    }
  }
  d.of_length = sqrt(apart / length);
  return d;
}

static double worse(double worst, float loss, float than) {
  return fmax(worst, fabs((double)loss - (double)than) / fabs((double)than));
}

static void check(bench *b, const options *o) {
  double worst = 0, from_exact[N_SIDES] = {0};
  for (int step = 0; step < o->n_check; step++) {
    float loss[N_TRAINERS] = {0};
    for (int side = 0; side < N_TRAINERS; side++) {
      if (b->sides[side]) loss[side] = take_step(b, side, NULL);
    }
    worst = worse(worst, loss[SPARSE], loss[DENSE]);
    for (int side = 0; side < N_SIDES && b->sides[EXACT]; side++) {
      from_exact[side] = worse(from_exact[side], loss[side], loss[EXACT]);
    }
  }
  const difference d = compare(b, DENSE, SPARSE);
  (void)printf("after %d steps: losses within %.2e, all parameters within %.2e of their length\n",
               o->n_check, worst, d.of_length);
  (void)printf("of a tensor's largest: weights within %.2e (%s), vectors %.2e (%s)\n", d.worst[0],
               d.where[0], d.worst[1], d.where[1]);
  for (int side = 0; side < N_SIDES && b->sides[EXACT]; side++) {
    (void)printf("%s, from steps of f32: losses within %.2e, all parameters %.2e\n", names[side],
                 from_exact[side], compare(b, EXACT, side).of_length);
  }
}

static options read_options(int argc, char **argv) {
  options o = {.arch = "resnet50", .batch = 16, .threads = 1, .rounds = 5};
  for (int at = 1; at < argc; at++) {
    const char *value = at + 1 < argc ? argv[at + 1] : "";
    if (strcmp(argv[at], "--processor") == 0) o.processor = true;
    else if (strcmp(argv[at], "--profile") == 0) o.profile = true;
    else if (strcmp(argv[at], "--dtype") == 0) o.bf16 = strcmp(value, "bf16") == 0, at++;
    else if (strcmp(argv[at], "--arch") == 0) o.arch = value, at++;
    else if (strcmp(argv[at], "--batch") == 0) o.batch = atoi(value), at++;
    else if (strcmp(argv[at], "--size") == 0) o.size = atoi(value), at++;
    else if (strcmp(argv[at], "--threads") == 0) o.threads = atoi(value), at++;
    else if (strcmp(argv[at], "--rounds") == 0) o.rounds = atoi(value), at++;
    else if (strcmp(argv[at], "--check") == 0) o.n_check = atoi(value), at++;
    else die("an option that it has not");
  }
  if (o.rounds < 1 || o.rounds > MOST_ROUNDS || o.batch < 1) die("too few or too many");
  return o;
}

int main(int argc, char **argv) {
  const options o = read_options(argc, argv);
  bench b = {.model = NULL};
  const laci_arch_options arch = {.name = o.arch, .image_size = (int)o.size};
  lac_error err = {0};
  if (laci_arch_build(&arch, &b.model, &err)) die(err.text);
  make_masks(&b);
  for (int side = 0; side < N_SIDES; side++) make_trainer(&b, &o, side);
  if (o.bf16 && o.n_check > 0) make_trainer(&b, &o, EXACT);
  make_batch(&b);
  if (o.n_check > 0) check(&b, &o);
  else run_micro_batches(&b, &o);
  for (int side = 0; side < N_SIDES && o.profile; side++) profile(&b, &o, side);
  for (int side = 0; side < N_TRAINERS; side++) laci_trainer_destroy(b.sides[side]);
  for (int s = 0; s < b.model->n_stored; s++) laci_free(b.masks[s]);
  laci_free((void *)b.masks);
  laci_free(b.weights);
  laci_free(b.images);
  laci_free(b.labels);
  laci_graph_destroy(b.model);
  return 0;
}
