/* SPDX-License-Identifier: Apache-2.0
 * Damaged networks through every verb's library call: damage SEED FIRST COUNT FOLDER FILE...
 *
 * Mutant number k comes from one of the files and (SEED, k) alone. It runs in a process of its own,
 * which ends "refused" (one error line) or "done"; what a verb made of a mutant must hold: a pruned
 * network that was saved loads again and passes its own check. After 10 seconds the work is asked
 * to end, as by Ctrl-C; a process that is still there after 60 hangs. All other mutants
 * stay in FOLDER. Prints the counts; the status is 1 if one was wrong. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/reader.h"
#include "base/rng.h"
#include "base/writer.h"
#include "lacuna/engine.h"
#include "lacuna/log.h"
#include "lacuna/prune.h"
#include "lacuna/run.h"
#include "lacuna/train.h"
#include "support/load_bytes.h"
#include "torture/mutate.h"

enum { ASK_AFTER_S = 10, HANGS_AFTER_S = 60, MOST_RUN_BYTES = 1 << 26 };

/* How a mutant's process ends. */
enum { DONE = 0, REFUSED = 10, WRONG = 11 };

static const char *folder;
static char mutant_path[PATH_MAX], pruned_path[PATH_MAX];

static void say_wrong(const char *what, const char *text) {
  fprintf(stderr, "%s: %s\n", what, text);
  _exit(WRONG);
}

/* A status and its text agree, and the text is one line. */
static bool holds(const char *verb, lac_status st, const lac_error *err) {
  if ((st == LAC_OK) != (err->text[0] == 0)) say_wrong(verb, "status and text do not agree");
  if (strchr(err->text, '\n')) say_wrong(verb, "an error of several lines");
  return st == LAC_OK;
}

/* ---- Verbs ---- */

static lac_options light_options(void) {
  lac_options o = lac_options_default();
  o.effort = LAC_EFFORT_FAST;
  o.threads = 1;
  o.all_sizes = true;
  return o;
}

static void try_report(const char *verb, lac_status st, lac_model *model, lac_report *report,
                       const lac_error *err) {
  lac_error late = {0};
  char *json = NULL, path[PATH_MAX];
  if (!holds(verb, st, err)) return;
  (void)holds("json", lac_report_json(report, &json, &late), &late);
  lac_text_free(json);
  late = (lac_error){0};
  (void)snprintf(path, sizeof path, "%s/mutant.dot", folder);
  (void)holds("plot", lac_plot(model, report, path, true, NULL, &late), &late);
  (void)unlink(path);
}

static void try_inspect(lac_model *model) {
  lac_options o = light_options();
  lac_report *report = NULL;
  lac_error err = {0};
  lac_status st = lac_inspect(model, &o, &report, &err);
  try_report("inspect", st, model, report, &err);
  lac_report_destroy(report);
}

/* What was pruned and saved loads again, holds the pattern and comes from the mutant. */
static void check_pruned(lac_model *original) {
  lac_options o = light_options();
  lac_model *pruned = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  if (!holds("load", lac_model_load(pruned_path, NULL, &pruned, &err), &err))
    say_wrong("what prune wrote does not load", err.text);
  lac_status st = lac_check(pruned, original, &o, &report, &err);
  if (!holds("check", st, &err) && st == LAC_PROOF_FAILED)
    say_wrong("what prune wrote fails its check", err.text);
  lac_report_destroy(report);
  lac_model_destroy(pruned);
}

static void try_prune(const mutant *m) {
  lac_options o = light_options();
  lac_model *model = NULL, *original = NULL;
  lac_report *report = NULL;
  lac_error err = {0};
  if (load_bytes(m->bytes, m->n, &model, &err)) return;
  lac_status st = lac_prune(model, &o, &report, &err);
  if (st == LAC_PROOF_FAILED) say_wrong("prune", err.text);
  try_report("prune", st, model, report, &err);
  if (!st && holds("save", lac_model_save(model, pruned_path, true, &err), &err) &&
      !load_bytes(m->bytes, m->n, &original, &err))
    check_pruned(original);
  (void)unlink(pruned_path);
  lac_report_destroy(report);
  lac_model_destroy(original);
  lac_model_destroy(model);
}

static void try_engine(lac_model *model) {
  lac_engine_options o = lac_engine_options_default();
  lac_engine *engine = NULL;
  const lac_engine_port *in, *out;
  lac_error err = {0};
  o.run.threads = 1;
  if (!holds("engine", lac_engine_create(model, &o, &engine, &err), &err)) return;
  int n_in = lac_engine_inputs(engine, &in), n_out = lac_engine_outputs(engine, &out);
  const void **inputs = calloc((size_t)n_in + 1, sizeof *inputs);
  void **outputs = calloc((size_t)n_out + 1, sizeof *outputs);
  bool small = inputs && outputs;
  for (int k = 0; small && k < n_in; k++)
    small = in[k].size_bytes < MOST_RUN_BYTES && (inputs[k] = calloc(in[k].size_bytes + 1, 1));
  for (int k = 0; small && k < n_out; k++)
    small = out[k].size_bytes < MOST_RUN_BYTES && (outputs[k] = calloc(out[k].size_bytes + 1, 1));
  if (small) (void)holds("run", lac_engine_run(engine, inputs, outputs, &err), &err);
  lac_engine_destroy(engine);
}

static void try_training(lac_model *model) {
  lac_train_options o = lac_train_options_default();
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_error err = {0};
  o.run.threads = 1;
  o.batch = 8;
  o.steps = 2;
  o.evaluate = false;
  (void)holds("train", lac_train(model, LAC_SOURCE_DIR "/examples/digits", NULL, &o, &result, &err),
              &err);
}

static void run_verbs(const mutant *m) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (!holds("load", load_bytes(m->bytes, m->n, &model, &err), &err)) _exit(REFUSED);
  try_inspect(model);
  try_prune(m);
  try_engine(model);
  try_training(model);
  _exit(DONE);
}

/* ---- Processes ---- */

static void on_alarm(int signal) {
  (void)signal;
  lac_interrupt(true);
  (void)alarm(0);
}

static bool keep_mutant(const mutant *m, uint64_t number) {
  lac_error err = {0};
  (void)snprintf(mutant_path, sizeof mutant_path, "%s/mutant-%" PRIu64 ".onnx", folder, number);
  (void)snprintf(pruned_path, sizeof pruned_path, "%s/pruned-%" PRIu64 ".onnx", folder, number);
  return laci_file_write(mutant_path, m->bytes, m->n, true, &err) == LAC_OK;
}

static void run_mutant(const laci_file_bytes *file, uint64_t seed, uint64_t number) {
  mutant m = mutate(file->bytes, file->size_bytes, seed, number);
  if (!m.bytes || !keep_mutant(&m, number)) _exit(WRONG);
  (void)signal(SIGALRM, on_alarm);
  (void)alarm(ASK_AFTER_S);
  run_verbs(&m);
}

typedef struct counts {
  uint64_t done, refused, wrong, hung, crashed;
} counts;

/* Waits for the child, but not forever. */
static int wait_for(pid_t child, bool *hung) {
  int status = 0;
  *hung = false;
  for (int tick = 0; waitpid(child, &status, WNOHANG) == 0; tick++) {
    (void)usleep(tick < 200 ? 500 : 20000);
    if (tick < 200 + HANGS_AFTER_S * 50 || *hung) continue;
    *hung = true;
    (void)kill(child, SIGKILL);
  }
  return status;
}

static void count_one(counts *sum, int status, bool hung, uint64_t number) {
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == DONE) sum->done++;
  else if (code == REFUSED) sum->refused++;
  else if (hung) sum->hung++;
  else if (code == WRONG) sum->wrong++;
  else sum->crashed++;
  if (code == DONE || code == REFUSED) (void)unlink(mutant_path);
  else
    fprintf(stderr, "mutant %" PRIu64 " %s: kept as %s\n", number,
            hung            ? "hangs"
            : code == WRONG ? "is taken wrongly"
            : code >= 0     ? "ended the process"
                            : strsignal(WTERMSIG(status)),
            mutant_path);
}

static uint64_t number_of(const char *text) { return strtoull(text, NULL, 10); }

int main(int argc, char **argv) {
  counts sum = {0};
  if (argc < 6) {
    fprintf(stderr, "usage: damage SEED FIRST COUNT FOLDER FILE...\n");
    return 2;
  }
  uint64_t seed = number_of(argv[1]), first = number_of(argv[2]), n = number_of(argv[3]);
  folder = argv[4];
  for (uint64_t number = first; number < first + n; number++) {
    const char *path = argv[5 + laci_rng_integer_below(seed, 0, number, (uint64_t)argc - 5)];
    laci_file_bytes file;
    lac_error err = {0};
    if (laci_file_bytes_read(path, &file, &err)) {
      fprintf(stderr, "%s\n", err.text);
      return 2;
    }
    (void)snprintf(mutant_path, sizeof mutant_path, "%s/mutant-%" PRIu64 ".onnx", folder, number);
    pid_t child = fork();
    bool hung;
    if (child == 0) run_mutant(&file, seed, number);
    if (child < 0) return 2;
    int status = wait_for(child, &hung);
    count_one(&sum, status, hung, number);
    laci_file_bytes_clear(&file);
  }
  printf("%" PRIu64 " done, %" PRIu64 " refused, %" PRIu64 " wrong, %" PRIu64 " hung, %" PRIu64
         " crashed\n",
         sum.done, sum.refused, sum.wrong, sum.hung, sum.crashed);
  return sum.wrong + sum.hung + sum.crashed > 0;
}
