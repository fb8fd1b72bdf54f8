/* SPDX-License-Identifier: Apache-2.0
 * Replacing a model and its data: at whatever moment the process ends, the model that is there has
 * the data that belong to it. The program's own renameat2, linkat and unlinkat count the calls and
 * end the process after one of them, as a kill would. */
#define _GNU_SOURCE
#include "graph/graph.h"
#include "onnx_build.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int calls_left; /* 0: no limit */

static int after(long result) {
  if (calls_left > 0 && --calls_left == 0) _exit(9);
  return (int)result;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
  return after(syscall(SYS_renameat2, from_dir, from, to_dir, to, flags));
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
  return after(syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
}

int unlinkat(int dir, const char *path, int flags) {
  return after(syscall(SYS_unlinkat, dir, path, flags));
}

static const char *const tensors[] = {"here", "a", "b"}; /* in the model, in u.bin, in v.bin */

/* All tensors hold the number. */
static void make_model(folder *dir, const char *name) {
  build b;
  float zeros[4] = {0};
  write_bytes(in_folder(dir, "u.bin"), zeros, sizeof zeros);
  write_bytes(in_folder(dir, "v.bin"), zeros, sizeof zeros);
  build_init(&b);
  build_input(&b, "x", "4");
  build_node(&b, b.graph, "Relu", "x", "y");
  build_output(&b, "y");
  PUSH(&b, b.graph, initializer, build_raw(&b, "here", 1, 4, zeros, sizeof zeros));
  PUSH(&b, b.graph, initializer, build_external(&b, "a", 4, "u.bin", NULL, NULL));
  PUSH(&b, b.graph, initializer, build_external(&b, "b", 4, "v.bin", NULL, NULL));
  build_save(&b, in_folder(dir, name));
  build_clear(&b);
}

static lac_status save(loaded *l, const char *out, float number) {
  for (int at = 0; at < 3; at++) {
    laci_stored *stored = find_stored(l->graph, tensors[at]);
    uint8_t *bytes = laci_stored_writable_bytes(stored);
    if (!bytes) return LAC_NO_MEMORY;
    for (size_t k = 0; k < stored->size_bytes; k += sizeof number) {
      memcpy(bytes + k, &number, sizeof number);
    }
  }
  return laci_onnx_save(l->file, l->graph, out, true, &l->err);
}

/* The number that all tensors hold. */
static float read_number(const char *path) {
  float first = -1, next;
  loaded l = load_path(path);
  assert_loaded(l);
  for (int at = 0; at < 3; at++) {
    memcpy(&next, find_stored(l.graph, tensors[at])->bytes, sizeof next);
    if (at == 0) first = next;
    if (!(next == first)) fail_msg("%s is %g, %s is %g", tensors[0], first, tensors[at], next);
  }
  loaded_clear(&l);
  return first;
}

static void a_kill_leaves_a_model_with_its_own_data(void **state) {
  (void)state;
  folder in, out;
  int n_old = 0, n_new = 0, ended = 9;
  folder_make(&in);
  folder_make(&out);
  make_model(&in, "m.onnx");
  loaded l = load_path(in_folder(&in, "m.onnx"));
  assert_loaded(l);
  const char *path = in_folder(&out, "m.onnx");
  char kept[256];
  (void)snprintf(kept, sizeof kept, "%s", path);
  for (int calls = 1; ended == 9; calls++) {
    assert_int_equal(save(&l, kept, 1), LAC_OK);
    assert_int_equal(count_files(&out), 3); /* what the kill before this one left is gone */
    pid_t child = fork();
    if (child == 0) {
      calls_left = calls;
      _exit(save(&l, kept, 2) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    ended = WEXITSTATUS(ended);
    float number = read_number(kept);
    assert_true(number == 1 || number == 2);
    n_old += number == 1;
    n_new += number == 2;
  }
  assert_int_equal(ended, 0);
  assert_true(n_old >= 2 && n_new >= 4); /* before and after the first rename of the model */
  assert_int_equal(count_files(&out), 3);
  loaded_clear(&l);
  folder_remove(&in);
  folder_remove(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kill_leaves_a_model_with_its_own_data),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
