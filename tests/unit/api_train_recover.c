/* SPDX-License-Identifier: Apache-2.0
 * lac_train, ended at random moments and recovered until it is done: the weights, the last
 * checkpoint and the log are those of an undisturbed run.
 *
 * Every run is a process of its own, this one never computes. It is ended between steps and in the
 * middle of them, by a timer anywhere, and in the middle of writing a file, whose size is limited.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "lacuna/log.h"
#include "lacuna/mask.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "lacuna/train.h"
#include "support/light.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"
enum {
  STEPS = 30,
  ENDS = 10,
  N_SEEDS = 3,
  DONE = 0,
  FAILED = 1,
  STOPPED = 2,
  KILLED = 3,
  WITHOUT = 4
};

/** What a run trains. */
typedef struct recipe {
  const char *optimizer;
  double rate;
  bool masked, bf16, keep_best;
  bool remat; /* every other process computes values again */
  int accumulate;
  double mixup, smoothing, ema;
} recipe;

/** How a run is ended. */
typedef enum ending {
  NEVER,
  INTERRUPTED, /* lac_interrupt after a step, and so in the evaluation that may follow */
  EVALUATED,   /* _exit after an evaluation, before a checkpoint says that it was made */
  EXITED,      /* _exit after a step */
  TIMED,       /* _exit by a timer */
  CUT_OFF,     /* by the system, once a file is longer than some bytes */
  N_ENDINGS
} ending;

typedef struct plan {
  ending how;
  int64_t at; /* steps after where it begins, microseconds, or bytes */
  bool remat;
} plan;

/* ---- In the child ---- */

static void on_event(const lac_train_event *event, void *context) {
  plan *p = context;
  if (event->kind == LAC_TRAIN_BEGIN && p->how == TIMED) {
    struct itimerval after = {.it_value = {.tv_usec = (suseconds_t)p->at}};
    (void)setitimer(ITIMER_REAL, &after, NULL);
  }
  if (event->kind == LAC_TRAIN_BEGIN && p->how != TIMED) p->at += event->step;
  if (event->kind == LAC_TRAIN_EVALUATED && p->how == EVALUATED) _exit(KILLED);
  if (event->kind != LAC_TRAIN_STEP || event->step != p->at) return;
  if (p->how == EXITED) _exit(KILLED);
  if (p->how == INTERRUPTED) lac_interrupt(true);
}

static void die(int signal_number) {
  (void)signal_number;
  _exit(KILLED);
}

static lac_status make_masks(lac_model *model, lac_mask **mask, lac_error *err) {
  lac_options o = lac_options_default();
  lac_report *report = NULL;
  o.all_sizes = true;
  o.effort = LAC_EFFORT_FAST;
  o.threads = 1;
  lac_status st = lac_prune(model, &o, &report, err);
  if (!st) st = lac_mask_from_model(model, &o, mask, err);
  lac_report_destroy(report);
  return st;
}

static lac_train_options options_of(const recipe *r, const char *dir, plan *p) {
  lac_train_options o = lac_train_options_default();
  o.run.threads = 1; /* quick on busy machines; train_loop.c has two */
  o.run.dtype = r->bf16 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32;
  o.remat = p->remat;
  o.seed = 9;
  o.recipe = "cifar";
  o.batch = 24;
  o.accumulate = r->accumulate;
  o.steps = STEPS;
  o.optimizer = r->optimizer;
  o.rate = r->rate;
  o.mixup = r->mixup;
  o.label_smoothing = r->smoothing;
  o.ema = r->ema;
  o.eval_steps = 7;
  o.eval_first = r->masked; /* as after pruning */
  o.keep_best = r->keep_best;
  o.model_dir = dir;
  o.checkpoint_steps = 4;
  o.keep_checkpoints = 2;
  o.recover = true;
  o.listener = on_event;
  o.context = p;
  return o;
}

static int train(const recipe *r, const char *dir, plan *p) {
  lac_network_options network = {.size = sizeof(lac_network_options), .name = "digits", .seed = 4};
  lac_model *model = NULL;
  lac_mask *mask = NULL;
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  char path[FOLDER_PATH];
  lac_train_options o = options_of(r, dir, p);
  lac_status st = lac_network_create(&network, &model, &err);
  if (!st && r->masked) st = make_masks(model, &mask, &err);
  if (!st && p->how == CUT_OFF) {
    struct rlimit most = {(rlim_t)p->at, (rlim_t)p->at};
    (void)setrlimit(RLIMIT_FSIZE, &most); /* SIGXFSZ at the first byte beyond */
  }
  if (!st) st = lac_train(model, DIGITS, mask, &o, &result, &err);
  if (!st) {
    (void)snprintf(path, sizeof path, "%s/final.onnx", dir);
    st = lac_model_save(model, path, true, &err);
  }
  lac_mask_destroy(mask);
  lac_model_destroy(model);
  if (st == LAC_INTERRUPTED) return STOPPED;
  if (st == LAC_UNSUPPORTED && r->bf16) return WITHOUT;
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  return st ? FAILED : DONE;
}

/* ---- In the parent ---- */

static int n_hits[N_ENDINGS]; /* runs that were ended so */

static int train_apart(const recipe *r, const char *dir, plan p) {
  int status = 0;
  (void)fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)signal(SIGALRM, die);
    (void)signal(SIGXFSZ, die);
    (void)signal(SIGSEGV, SIG_DFL); /* cmocka would go on with its tests in here */
    (void)alarm(300);
    _exit(train(r, dir, &p));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static plan draw_plan(uint64_t seed, uint64_t k) {
  static const int64_t most[N_ENDINGS] = {0, 5, 1, 5, 60000, 700000};
  plan p = {.how = (ending)(1 + k % (N_ENDINGS - 1))};
  double share = laci_rng_unit_interval(seed, 1, k);
  if (p.how == TIMED) share *= share; /* early more often: machines differ */
  p.at = 1 + (int64_t)(share * (double)most[p.how]);
  return p;
}

static char *read_text(const char *dir, const char *name, size_t *n) {
  char path[FOLDER_PATH];
  laci_file_bytes map;
  (void)snprintf(path, sizeof path, "%s/%s", dir, name);
  if (laci_file_bytes_read(path, &map, NULL)) fail_msg("%s: not there", path);
  char *text = calloc(map.size_bytes + 1, 1);
  assert_non_null(text);
  memcpy(text, map.bytes, map.size_bytes);
  *n = map.size_bytes;
  laci_file_bytes_clear(&map);
  return text;
}

static void assert_same_file(const char *a, const char *b, const char *name) {
  size_t n, m;
  char *x = read_text(a, name, &n), *y = read_text(b, name, &m);
  if (n != m || memcmp(x, y, n) != 0) fail_msg("%s/%s is not that of %s", b, name, a);
  free(x);
  free(y);
}

/** Speeds differ from run to run: they go, the rest of a line is the same. */
static void drop_speeds(char *log) {
  static const char key[] = "\"images_per_second\": ";
  for (char *at = log; (at = strstr(at, key)) != NULL;) {
    const char *end = strchr(at, '}');
    assert_non_null(end);
    memmove(at, end, strlen(end) + 1);
  }
}

static void assert_same_log(const char *a, const char *b) {
  size_t n, m;
  char *x = read_text(a, "log.jsonl", &n), *y = read_text(b, "log.jsonl", &m);
  drop_speeds(x);
  drop_speeds(y);
  if (strcmp(x, y) != 0) fail_msg("%s\nis not\n%s", y, x);
  free(x);
  free(y);
}

static void check(const recipe *r, uint64_t seed) {
  folder whole = make_folder(), ended = make_folder();
  int n_ended = 0, code = train_apart(r, whole.path, (plan){0});
  if (code == WITHOUT) { /* no bf16 here */
    remove_folder(&whole);
    remove_folder(&ended);
    skip();
  }
  assert_int_equal(code, DONE);
  code = FAILED;
  for (uint64_t k = 0; k < ENDS && code != DONE; k++) {
    plan p = draw_plan(seed, k);
    p.remat = r->remat && k % 2 == 0;
    code = train_apart(r, ended.path, p);
    if (code == FAILED) fail_msg("end %" PRIu64 " of seed %" PRIu64, k, seed);
    n_ended += code != DONE;
    n_hits[p.how] += code != DONE;
  }
  if (code != DONE) code = train_apart(r, ended.path, (plan){0});
  assert_int_equal(code, DONE);
  assert_true(n_ended > 0);
  assert_same_file(whole.path, ended.path, "final.onnx");
  assert_same_file(whole.path, ended.path, "checkpoint-000000000030.lac");
  assert_same_log(whole.path, ended.path);
  remove_folder(&whole);
  remove_folder(&ended);
}

static void check_seeds(const recipe *r) {
  const uint64_t n = tests_are_light() ? 1 : N_SEEDS;
  for (uint64_t seed = 0; seed < n; seed++) check(r, seed);
}

static void dense_training_comes_back(void **state) {
  (void)state;
  check_seeds(&(recipe){.optimizer = "sgd", .rate = 0.05, .accumulate = 1});
}

static void masked_training_comes_back(void **state) {
  (void)state;
  check_seeds(&(recipe){.optimizer = "sgd", .rate = 0.05, .accumulate = 1, .masked = true});
}

static void the_best_weights_of_accumulated_steps_come_back(void **state) {
  (void)state;
  check_seeds(&(recipe){.optimizer = "adamw", .rate = 2e-3, .accumulate = 2, .keep_best = true});
}

static void mixed_and_smoothed_labels_come_back(void **state) {
  (void)state;
  check_seeds(&(recipe){.optimizer = "lars",
                        .rate = 1,
                        .accumulate = 1,
                        .masked = true,
                        .keep_best = true,
                        .mixup = 0.2,
                        .smoothing = 0.1});
}

static void averages_come_back(void **state) {
  (void)state;
  check_seeds(
      &(recipe){.optimizer = "sgd", .rate = 0.05, .accumulate = 1, .masked = true, .ema = 0.9});
}

static void the_best_averages_come_back(void **state) {
  (void)state;
  check_seeds(&(recipe){.optimizer = "adamw",
                        .rate = 2e-3,
                        .accumulate = 2,
                        .masked = true,
                        .keep_best = true,
                        .ema = 0.6});
}

static void bf16_comes_back(void **state) {
  (void)state;
  check_seeds(&(recipe){.optimizer = "sgd",
                        .rate = 0.05,
                        .accumulate = 2,
                        .masked = true,
                        .bf16 = true,
                        .keep_best = true});
}

static void what_computes_again_and_what_does_not_go_on_with_each_other(void **state) {
  (void)state;
  check_seeds(
      &(recipe){.optimizer = "sgd", .rate = 0.05, .accumulate = 1, .masked = true, .remat = true});
}

static void every_kind_of_end_has_been_met(void **state) {
  (void)state;
  for (int how = NEVER + 1; how < N_ENDINGS; how++) {
    print_message("ending %d: %d runs\n", how, n_hits[how]);
    assert_true(n_hits[how] > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense_training_comes_back),
      cmocka_unit_test(masked_training_comes_back),
      cmocka_unit_test(the_best_weights_of_accumulated_steps_come_back),
      cmocka_unit_test(mixed_and_smoothed_labels_come_back),
      cmocka_unit_test(averages_come_back),
      cmocka_unit_test(the_best_averages_come_back),
      cmocka_unit_test(bf16_comes_back),
      cmocka_unit_test(what_computes_again_and_what_does_not_go_on_with_each_other),
      cmocka_unit_test(every_kind_of_end_has_been_met),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
