/* SPDX-License-Identifier: Apache-2.0
 * train: checkpoints come back bit for bit, the newest whole one is found, nothing damaged passes,
 * and training goes on from one as if nothing had happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/snapshot.h"
#include "unit/data_folder.h"

enum { N = 101, N_STATISTICS = 6 };

static const laci_parameter network[2] = {
    {.name = "w", .offset = 0, .count = 90},
    {.name = "b", .offset = 90, .count = 11, .is_vector = true},
};

typedef struct run {
  float weights[N], statistics[N_STATISTICS];
  uint8_t masks[N];
  laci_snapshot snapshot;
} run;

static void start(run *r, laci_optimizer_kind kind) {
  laci_optimizer_options options = laci_optimizer_options_default(kind);
  memset(r, 0, sizeof *r);
  for (int i = 0; i < N; i++) {
    r->weights[i] = (float)laci_rng_unit_interval(1, 1, (uint64_t)i) - 0.5F;
    r->masks[i] = i >= 90 || i % 4 < 2;
  }
  laci_optimizer *o = NULL;
  assert_int_equal(laci_optimizer_create(&options, network, 2, NULL, &o, NULL), LAC_OK);
  laci_optimizer_set_mask(o, 0, r->masks, r->weights);
  r->snapshot = (laci_snapshot){.seed = 77,
                                .best_top1 = -1,
                                .structure = laci_parameters_hash(network, 2),
                                .options = "{\"recipe\": \"cifar\"}",
                                .weights = r->weights,
                                .n_weights = N,
                                .statistics = r->statistics,
                                .n_statistics = N_STATISTICS,
                                .masks = r->masks,
                                .optimizer = o};
}

static void train(run *r, int n) {
  for (int k = 0; k < n; k++) {
    float g[N];
    for (int i = 0; i < N; i++) {
      g[i] =
          (float)laci_rng_unit_interval(r->snapshot.seed, (uint64_t)r->snapshot.step, (uint64_t)i) -
          0.5F;
    }
    laci_optimizer_step(r->snapshot.optimizer, 0.1F, 1, r->weights, g);
    r->statistics[r->snapshot.step % N_STATISTICS] += g[0];
    r->snapshot.step++;
    r->snapshot.epoch = r->snapshot.step / 10;
  }
}

static void end(run *r) { laci_optimizer_destroy(r->snapshot.optimizer); }

static void going_on_is_as_if_nothing_had_happened(void **state) {
  (void)state;
  folder f = make_folder();
  for (int kind = 0; kind < LACI_OPTIMIZER_COUNT; kind++) {
    run whole, first, second;
    start(&whole, (laci_optimizer_kind)kind);
    start(&first, (laci_optimizer_kind)kind);
    start(&second, (laci_optimizer_kind)kind);
    train(&whole, 25);
    train(&first, 13);
    first.snapshot.best_top1 = 0.5;
    first.snapshot.best_step = 10;
    assert_int_equal(laci_snapshot_write_checkpoint(f.path, &first.snapshot, 3, NULL), LAC_OK);
    laci_checkpoint *c = NULL;
    memset(second.weights, 0x55, sizeof second.weights);
    memset(second.masks, 7, sizeof second.masks);
    second.snapshot.seed = 0;
    assert_int_equal(laci_checkpoint_open_newest(f.path, &c, NULL), LAC_OK);
    assert_int_equal(laci_snapshot_read_checkpoint(c, &second.snapshot, NULL), LAC_OK);
    assert_int_equal(second.snapshot.step, 13);
    assert_int_equal(second.snapshot.epoch, 1);
    assert_int_equal(second.snapshot.seed, 77);
    assert_true(second.snapshot.best_top1 == 0.5 && second.snapshot.best_step == 10);
    assert_string_equal(second.snapshot.options, "{\"recipe\": \"cifar\"}");
    assert_memory_equal(second.masks, first.masks, N);
    laci_checkpoint_close(c);
    train(&second, 12);
    assert_memory_equal(second.weights, whole.weights, sizeof whole.weights);
    assert_memory_equal(second.statistics, whole.statistics, sizeof whole.statistics);
    end(&whole);
    end(&first);
    end(&second);
  }
  remove_folder(&f);
}

static int count_files(const folder *f, int from, int to) {
  int n = 0;
  for (int step = from; step <= to; step++) {
    char path[FOLDER_PATH];
    (void)snprintf(path, sizeof path, "%s/checkpoint-%012d.lac", f->path, step);
    n += access(path, F_OK) == 0;
  }
  return n;
}

static void the_newest_ones_are_kept(void **state) {
  (void)state;
  folder f = make_folder();
  laci_section section = {"a", "hello", 5}, found;
  laci_checkpoint *c = NULL;
  add_text(&f, "checkpoint-x.lac", "no number");
  add_text(&f, "notes.txt", "kept");
  char path[FOLDER_PATH];
  add_text(&f, ".lacuna-0123456789abcdef.tmp", "of a writer that is at work: it is locked");
  path_in(path, &f, ".lacuna-0123456789abcdef.tmp");
  int lock = open(path, O_RDONLY);
  assert_int_equal(flock(lock, LOCK_EX), 0);
  for (int step = 1; step <= 9; step++) {
    assert_int_equal(laci_checkpoint_write(f.path, step, &section, 1, 3, NULL), LAC_OK);
    assert_int_equal(count_files(&f, 0, 20), step < 3 ? step : 3);
  }
  assert_int_equal(count_files(&f, 7, 9), 3);
  assert_int_equal(laci_checkpoint_open_newest(f.path, &c, NULL), LAC_OK);
  assert_int_equal(laci_checkpoint_step(c), 9);
  assert_int_equal(laci_checkpoint_find_section(c, "a", &found, NULL), LAC_OK);
  assert_true(found.size_bytes == 5 && memcmp(found.bytes, "hello", 5) == 0);
  assert_true((uintptr_t)found.bytes % 64 == 0);
  assert_int_equal(laci_checkpoint_find_section(c, "b", &found, NULL), LAC_BAD_FILE);
  laci_checkpoint_close(c);
  assert_int_equal(laci_checkpoint_write(f.path, 2, &section, 1, 2, NULL), LAC_OK);
  assert_int_equal(count_files(&f, 2, 2), 1); /* just written: it stays, though it is the oldest */
  assert_int_equal(count_files(&f, 0, 20), 2);
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(close(lock), 0); /* as the end of its process does */
  assert_int_equal(laci_checkpoint_write(f.path, 3, &section, 1, 2, NULL), LAC_OK);
  assert_int_equal(access(path, F_OK), -1);
  path_in(path, &f, "notes.txt");
  assert_int_equal(access(path, F_OK), 0);
  remove_folder(&f);
}

static void damaged_ones_are_passed_over(void **state) {
  (void)state;
  folder f = make_folder();
  laci_section section = {"a", "hello", 5};
  laci_checkpoint *c = NULL;
  lac_error err = {0};
  assert_int_equal(laci_checkpoint_open_newest(f.path, &c, &err), LAC_NOT_FOUND);
  assert_int_equal(laci_checkpoint_open_newest("no/such/folder", &c, &err), LAC_NOT_FOUND);
  add_text(&f, "checkpoint-000000000009.lac", "damaged");
  assert_int_equal(laci_checkpoint_open_newest(f.path, &c, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "checkpoint-000000000009.lac"));
  assert_int_equal(laci_checkpoint_write(f.path, 4, &section, 1, 5, NULL), LAC_OK);
  add_text(&f, "checkpoint-000000000007.lac", "");
  assert_int_equal(laci_checkpoint_open_newest(f.path, &c, NULL), LAC_OK);
  assert_int_equal(laci_checkpoint_step(c), 4);
  laci_checkpoint_close(c);
  remove_folder(&f);
}

/* A whole checkpoint's bytes; freed by the caller. */
static uint8_t *make_bytes(const folder *f, size_t *n) {
  char path[FOLDER_PATH];
  laci_file_bytes map;
  run r;
  start(&r, LACI_OPTIMIZER_SGD);
  train(&r, 3);
  assert_int_equal(laci_snapshot_write_checkpoint(f->path, &r.snapshot, 1, NULL), LAC_OK);
  end(&r);
  path_in(path, f, "checkpoint-000000000003.lac");
  assert_int_equal(laci_file_bytes_read(path, &map, NULL), LAC_OK);
  uint8_t *bytes = malloc(map.size_bytes);
  assert_non_null(bytes);
  memcpy(bytes, map.bytes, map.size_bytes);
  *n = map.size_bytes;
  laci_file_bytes_clear(&map);
  return bytes;
}

static lac_status open_bytes(const folder *f, const uint8_t *bytes, size_t n) {
  char path[FOLDER_PATH];
  laci_checkpoint *c = NULL;
  lac_error err = {0};
  path_in(path, f, "try"); /* written plainly: thousands of synced files would take minutes */
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
  lac_status st = laci_checkpoint_open(path, &c, &err);
  assert_true(st ? c == NULL && err.text[0] : c != NULL);
  laci_checkpoint_close(c);
  return st;
}

static void no_changed_byte_and_no_cut_passes(void **state) {
  (void)state;
  folder f = make_folder();
  size_t n;
  uint8_t *bytes = make_bytes(&f, &n);
  assert_int_equal(open_bytes(&f, bytes, n), LAC_OK);
  for (size_t at = 0; at < n; at += at < 320 ? 1 : 7) {
    uint8_t change = (uint8_t)(1 << laci_rng_integer_below(1, 1, at, 8));
    bytes[at] ^= change;
    lac_status st = open_bytes(&f, bytes, n);
    assert_true(st == LAC_BAD_FILE || (st == LAC_UNSUPPORTED && at >= 8 && at < 12));
    bytes[at] ^= change;
  }
  for (size_t kept = 0; kept < n; kept += kept < 320 ? 1 : 13) {
    assert_int_equal(open_bytes(&f, bytes, kept), LAC_BAD_FILE);
  }
  assert_int_equal(open_bytes(&f, bytes, n), LAC_OK);
  free(bytes);
  remove_folder(&f);
}

static void wrong_headers_ask_for_nothing(void **state) {
  (void)state;
  folder f = make_folder();
  size_t n;
  uint8_t *bytes = make_bytes(&f, &n), *wrong = malloc(n);
  assert_non_null(wrong);
  for (uint64_t k = 0; k < 3000; k++) { /* wild numbers in header and table */
    memcpy(wrong, bytes, n);
    for (int i = 0; i < 3; i++) {
      size_t at = 12 + (size_t)laci_rng_integer_below(2, k, (uint64_t)i, 280);
      uint64_t number =
          laci_rng(3, k, (uint64_t)i) >> laci_rng_integer_below(4, k, (uint64_t)i, 64);
      memcpy(wrong + at, &number, sizeof number);
    }
    if (memcmp(wrong, bytes, n) != 0) assert_int_not_equal(open_bytes(&f, wrong, n), LAC_OK);
  }
  free(wrong);
  free(bytes);
  remove_folder(&f);
}

static void foreign_checkpoints_leave_the_run_as_it_was(void **state) {
  (void)state;
  folder f = make_folder();
  laci_checkpoint *c = NULL;
  run written, other;
  start(&written, LACI_OPTIMIZER_SGD);
  train(&written, 2);
  assert_int_equal(laci_snapshot_write_checkpoint(f.path, &written.snapshot, 1, NULL), LAC_OK);
  assert_int_equal(laci_checkpoint_open_newest(f.path, &c, NULL), LAC_OK);
  for (int k = 0; k < 5; k++) {
    static const char *const why[] = {"another network", "optimizer", "weights", "statistics",
                                      "dense"};
    start(&other, k == 1 ? LACI_OPTIMIZER_ADAMW : LACI_OPTIMIZER_SGD);
    float kept[N];
    lac_error err = {0};
    memcpy(kept, other.weights, sizeof kept);
    if (k == 0) other.snapshot.structure++;
    if (k == 2) other.snapshot.n_weights--;
    if (k == 3) other.snapshot.n_statistics++;
    if (k == 4) other.snapshot.masks = NULL;
    assert_int_equal(laci_snapshot_read_checkpoint(c, &other.snapshot, &err), LAC_BAD_FILE);
    assert_non_null(strstr(err.text, why[k]));
    assert_memory_equal(kept, other.weights, sizeof kept);
    assert_int_equal(other.snapshot.step, 0);
    end(&other);
  }
  laci_checkpoint_close(c);
  end(&written);
  remove_folder(&f);
}

static void bad_sections_are_refused(void **state) {
  (void)state;
  folder f = make_folder();
  laci_section twice[2] = {{"a", "", 0}, {"a", "", 0}};
  laci_section longer = {"a name of more than thirty-one bytes", "", 0}, none = {"", "", 0};
  assert_int_equal(laci_checkpoint_write(f.path, 1, twice, 2, 1, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_checkpoint_write(f.path, 1, &longer, 1, 1, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_checkpoint_write(f.path, 1, &none, 1, 1, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_checkpoint_write(f.path, -1, twice, 1, 1, NULL), LAC_BAD_ARGUMENT);
  assert_int_equal(laci_checkpoint_write("no/such/folder", 1, twice, 1, 1, NULL), LAC_NOT_FOUND);
  assert_int_equal(laci_checkpoint_write(f.path, 1, twice, 0, 1, NULL), LAC_OK);
  remove_folder(&f);
}

static void without_memory_it_fails_cleanly(void **state) {
  (void)state;
  folder f = make_folder();
  run r;
  start(&r, LACI_OPTIMIZER_ADAMW);
  int n_failed = 0;
  for (long n = 1; n < 30; n++) {
    laci_checkpoint *c = NULL;
    laci_memory_fail_from(n);
    lac_status st = laci_snapshot_write_checkpoint(f.path, &r.snapshot, 2, NULL);
    if (!st) st = laci_checkpoint_open_newest(f.path, &c, NULL);
    laci_memory_fail_from(0);
    n_failed += st == LAC_NO_MEMORY;
    assert_true(st == LAC_OK || (st == LAC_NO_MEMORY && !c));
    laci_checkpoint_close(c);
  }
  assert_true(n_failed > 4 && n_failed < 29);
  end(&r);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(going_on_is_as_if_nothing_had_happened),
      cmocka_unit_test(the_newest_ones_are_kept),
      cmocka_unit_test(damaged_ones_are_passed_over),
      cmocka_unit_test(no_changed_byte_and_no_cut_passes),
      cmocka_unit_test(wrong_headers_ask_for_nothing),
      cmocka_unit_test(foreign_checkpoints_leave_the_run_as_it_was),
      cmocka_unit_test(bad_sections_are_refused),
      cmocka_unit_test(without_memory_it_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
