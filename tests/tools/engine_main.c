/* SPDX-License-Identifier: Apache-2.0
 * Runs a model on the fast engine, so that other runtimes and the plain engine can be compared.
 *
 *     engine_main [--bf16] [--threads N] [--plan] [--time SECONDS] [--shape NAME=1x3x8x8 ...]
 *                 MODEL.onnx [IN_DIR OUT_DIR]
 *
 * With folders: reads IN_DIR/INPUT.npy for every input, writes OUT_DIR/OUTPUT.npy. --plan prints
 * the plan, --time the shortest and the middle time of a run on zeros. A '/' in a name becomes '_'
 * in a file name. See tests/interop/test_engine.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "tools/npy.h"

enum { PATH_BYTES = 4096, MAX_SHAPES = 16, MAX_TIMES = 4096 };

typedef struct task {
  lac_engine_options options;
  lac_engine_shape shapes[MAX_SHAPES];
  bool plan;
  double seconds;
  const char *model, *in_folder, *out_folder;
} task;

static void make_path(char path[PATH_BYTES], const char *folder, const char *name) {
  size_t start = strlen(folder) + 1;
  (void)snprintf(path, PATH_BYTES, "%s/%s.npy", folder, name);
  for (size_t at = start; at < PATH_BYTES && path[at]; at++) {
    if (path[at] == '/') path[at] = '_';
  }
}

static lac_status read_input(const lac_engine_port *port, const char *folder, void *data,
                             lac_error *err) {
  char path[PATH_BYTES];
  laci_buf *buf = NULL;
  make_path(path, folder, port->name);
  lac_status st = npy_read(path, &buf, err);
  if (st) return st;
  if ((size_t)buf->count * lac_dtype_size(port->dtype) != port->size_bytes) {
    st = laci_fail(err, LAC_BAD_SHAPE, "%s: wanted %zu bytes", path, port->size_bytes);
  }
  for (int64_t at = 0; at < buf->count && !st; at++) {
    if (port->dtype == LAC_DTYPE_F32) ((float *)data)[at] = (float)laci_buf_get_f(buf, at);
    else ((int64_t *)data)[at] = laci_buf_get_i(buf, at);
  }
  laci_buf_destroy(buf);
  return st;
}

static lac_status write_output(const lac_engine_port *port, const char *folder, const void *data,
                               lac_error *err) {
  char path[PATH_BYTES];
  laci_buf *buf = NULL;
  laci_shape shape = laci_shape_of(port->rank, port->shape);
  lac_status st = laci_buf_create(port->dtype, &shape, &buf, err);
  for (int64_t at = 0; !st && at < buf->count; at++) {
    if (buf->f) buf->f[at] = (double)((const float *)data)[at];
    else buf->i[at] = ((const int64_t *)data)[at];
  }
  make_path(path, folder, port->name);
  if (!st) st = npy_write(path, buf, err);
  laci_buf_destroy(buf);
  return st;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static lac_status measure(lac_engine *engine, double seconds, const void *const *in,
                          void *const *out, lac_error *err) {
  static double times[MAX_TIMES];
  int n = 0;
  double spent = 0;
  lac_status st = lac_engine_run(engine, in, out, err);
  while (!st && spent < seconds && n < MAX_TIMES) {
    double start = laci_clock_seconds();
    st = lac_engine_run(engine, in, out, err);
    times[n] = laci_clock_seconds() - start;
    spent += times[n++];
  }
  if (st || n == 0) return st;
  qsort(times, (size_t)n, sizeof *times, compare);
  (void)printf("min %.3f ms, median %.3f ms of %d\n", times[0] * 1e3, times[n / 2] * 1e3, n);
  return LAC_OK;
}

static lac_status work(const task *t, lac_engine *engine, lac_error *err) {
  const lac_engine_port *in, *out;
  int n_in = lac_engine_inputs(engine, &in), n_out = lac_engine_outputs(engine, &out);
  void **inputs = laci_alloc((size_t)n_in, sizeof *inputs);
  void **outputs = laci_alloc((size_t)n_out, sizeof *outputs);
  lac_status st = inputs && outputs ? LAC_OK : laci_fail_memory(err, "the ports");
  for (int at = 0; at < n_in && !st; at++) {
    inputs[at] = laci_alloc(in[at].size_bytes, 1);
    if (!inputs[at]) st = laci_fail_memory(err, in[at].name);
    else if (t->in_folder) st = read_input(&in[at], t->in_folder, inputs[at], err);
  }
  for (int at = 0; at < n_out && !st; at++) {
    outputs[at] = laci_alloc(out[at].size_bytes, 1);
    if (!outputs[at]) st = laci_fail_memory(err, out[at].name);
  }
  if (t->plan) (void)printf("%s", lac_engine_plan_text(engine));
  const void *const *read = (const void *const *)inputs;
  if (!st && t->seconds > 0) st = measure(engine, t->seconds, read, outputs, err);
  if (!st && t->in_folder) st = lac_engine_run(engine, read, outputs, err);
  for (int at = 0; at < n_out && !st && t->out_folder; at++) {
    st = write_output(&out[at], t->out_folder, outputs[at], err);
  }
  for (int at = 0; inputs && at < n_in; at++) laci_free(inputs[at]);
  for (int at = 0; outputs && at < n_out; at++) laci_free(outputs[at]);
  laci_free(inputs);
  laci_free(outputs);
  return st;
}

static bool parse_shape(task *t, char *text) {
  char *value = strchr(text, '=');
  if (!value || t->options.n_shapes == MAX_SHAPES) return false;
  *value++ = 0;
  lac_engine_shape *shape = &t->shapes[t->options.n_shapes++];
  *shape = (lac_engine_shape){.name = text};
  while (*value && shape->rank < 8) {
    shape->shape[shape->rank++] = strtoll(value, &value, 10);
    if (*value == 'x') value++;
  }
  return true;
}

static bool parse(task *t, int argc, char **argv) {
  const char *places[3] = {0};
  int n = 0;
  for (int at = 1; at < argc; at++) {
    bool more = at + 1 < argc;
    if (strcmp(argv[at], "--bf16") == 0) t->options.run.dtype = LAC_DTYPE_BF16;
    else if (strcmp(argv[at], "--plan") == 0) t->plan = true;
    else if (strcmp(argv[at], "--threads") == 0 && more) t->options.run.threads = atoi(argv[++at]);
    else if (strcmp(argv[at], "--time") == 0 && more) t->seconds = atof(argv[++at]);
    else if (strcmp(argv[at], "--shape") == 0 && more && parse_shape(t, argv[at + 1])) at++;
    else if (argv[at][0] != '-' && n < 3) places[n++] = argv[at];
    else return false;
  }
  t->options.shapes = t->shapes;
  t->model = places[0];
  t->in_folder = places[1];
  t->out_folder = places[2];
  return n == 1 || n == 3;
}

int main(int argc, char **argv) {
  static task t;
  lac_error err = {0};
  lac_model *model = NULL;
  lac_engine *engine = NULL;
  t.options = lac_engine_options_default();
  if (!parse(&t, argc, argv)) {
    (void)fprintf(stderr, "usage: engine_main [options] MODEL.onnx [IN_DIR OUT_DIR]\n");
    return 2;
  }
  lac_status st = lac_model_load(t.model, NULL, &model, &err);
  double start = laci_clock_seconds();
  if (!st) st = lac_engine_create(model, &t.options, &engine, &err);
  if (!st && t.seconds > 0) {
    (void)printf("planned in %.1f ms\n", (laci_clock_seconds() - start) * 1e3);
  }
  if (!st) st = work(&t, engine, &err);
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  lac_engine_destroy(engine);
  lac_model_destroy(model);
  return st ? 1 : 0;
}
