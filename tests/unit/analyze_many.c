/* SPDX-License-Identifier: Apache-2.0
 * Nodes of very many inputs or outputs: what the analysis and the plan take of memory, all that is
 * freed again included, grows with the file, not with its square. Very many nodes: nor does the
 * time. */
#include "support/expect_classes.h"

#include <time.h>

#include "base/memory.h"
#include "permute/file.h"
#include "permute/plan.h"
#include "tensor/buf.h"

enum { CHANNELS = 4, FEW = 400, TIMES = 8, FEW_NODES = 12500, TIMES_NODES = 8 };

typedef struct many {
  laci_graph *graph;
  lac_error err;
} many;

static int value_of(many *m, const char *name, int number) {
  char text[64];
  (void)snprintf(text, sizeof text, number < 0 ? "%s" : "%s%d", name, number);
  int value = laci_graph_intern_value(m->graph, text);
  assert_true(value >= 0);
  return value;
}

static int store(many *m, const char *name, int number, lac_dtype dtype, laci_shape shape,
                 const void *values) {
  char text[64];
  int id;
  (void)snprintf(text, sizeof text, "%s%d", name, number);
  size_t n = (size_t)laci_shape_count(&shape), size = n * lac_dtype_size(dtype);
  laci_stored stored = {.name = text, .dtype = dtype, .shape = shape, .size_bytes = size};
  float *made = laci_alloc(n, sizeof(int64_t));
  for (size_t k = 0; k < n && !values; k++) made[k] = (float)(k % 97) + 1;
  if (values) memcpy(made, values, size);
  stored.bytes = stored.owned = (uint8_t *)made;
  if (laci_graph_add_stored(m->graph, &stored, &id, &m->err)) fail_msg("%s", m->err.text);
  return value_of(m, name, number);
}

static int weight(many *m, int number, int64_t out, int64_t in) {
  return store(m, "w", number, LAC_DTYPE_F32, (laci_shape){4, {out, in, 1, 1}}, NULL);
}

typedef struct ports {
  int n;
  const int *values;
} ports;

static void node(many *m, const char *type, ports in, ports out, int64_t axis) {
  laci_attr attr = {.name = "axis", .kind = LACI_ATTR_INT, .i = axis};
  laci_node made = {.type = type,
                    .version = 13,
                    .n_inputs = in.n,
                    .inputs = in.values,
                    .n_outputs = out.n,
                    .outputs = out.values,
                    .attrs = &attr,
                    .n_attrs = axis >= 0};
  int id;
  if (laci_graph_add_node(m->graph, &made, &id, &m->err)) fail_msg("%s", m->err.text);
}

static int conv(many *m, int x, int number, int64_t out, int64_t in) {
  int y = value_of(m, "conv", number);
  node(m, "Conv", (ports){2, (const int[]){x, weight(m, number, out, in)}}, (ports){1, &y}, -1);
  return y;
}

/* conv 0, `branch` made n times of it, joined and read by conv 1. */
typedef int branch_of(many *m, int y, int at);

static int the_same(many *m, int y, int at) {
  (void)m;
  (void)at;
  return y;
}

static int a_relu(many *m, int y, int at) {
  int r = value_of(m, "relu", at);
  node(m, "Relu", (ports){1, &y}, (ports){1, &r}, -1);
  return r;
}

static int a_conv(many *m, int y, int at) { return conv(m, y, at + 2, CHANNELS, CHANNELS); }

/* A bias of one number: each of its axes is broadcast, and has a label of its own in a Sum. */
static int a_number(many *m, int y, int at) {
  return at ? store(m, "b", at, LAC_DTYPE_F32, (laci_shape){3, {1, 1, 1}}, NULL) : y;
}

/* Three channels fit no blocks of four: all groups share blocks with their neighbours. */
static int a_conv_of_three(many *m, int y, int at) { return conv(m, y, at + 2, 3, CHANNELS); }

static void join(many *m, int y, int n, branch_of *branch, const char *type, int64_t channels) {
  bool sum = strcmp(type, "Sum") == 0;
  int *parts = laci_alloc((size_t)n, sizeof *parts), z = value_of(m, "joined", -1);
  for (int at = 0; at < n; at++) parts[at] = branch(m, y, at);
  node(m, type, (ports){n, parts}, (ports){1, &z}, sum ? -1 : 1);
  (void)conv(m, z, 1, 8, sum ? channels : n * channels);
  laci_free(parts);
}

static void begin(many *m, int64_t channels) {
  *m = (many){0};
  laci_type x = {.dtype = LAC_DTYPE_F32, .shape = {4, {1, 3, 2, 2}}};
  if (laci_graph_create(&m->graph, &m->err) || laci_graph_add_input(m->graph, "x", &x, &m->err))
    fail_msg("%s", m->err.text);
  (void)conv(m, value_of(m, "x", -1), 0, channels, 3);
}

static void make_same(many *m, int n) {
  begin(m, CHANNELS);
  join(m, value_of(m, "conv", 0), n, the_same, "Concat", CHANNELS);
}
static void make_relus(many *m, int n) {
  begin(m, CHANNELS);
  join(m, value_of(m, "conv", 0), n, a_relu, "Concat", CHANNELS);
}
static void make_convs(many *m, int n) {
  begin(m, CHANNELS);
  join(m, value_of(m, "conv", 0), n, a_conv, "Concat", CHANNELS);
}
static void make_threes(many *m, int n) {
  begin(m, CHANNELS);
  join(m, value_of(m, "conv", 0), n, a_conv_of_three, "Concat", 3);
}
static void make_sum(many *m, int n) {
  begin(m, CHANNELS);
  join(m, value_of(m, "conv", 0), n, a_number, "Sum", CHANNELS);
}
static void make_parts(many *m, int n) {
  begin(m, (int64_t)n * CHANNELS);
  int y = value_of(m, "conv", 0), *parts = laci_alloc((size_t)n, sizeof *parts);
  for (int at = 0; at < n; at++) parts[at] = value_of(m, "part", at);
  node(m, "Split", (ports){1, &y}, (ports){n, parts}, 1);
  int z = value_of(m, "joined", -1);
  node(m, "Concat", (ports){n, parts}, (ports){1, &z}, 1);
  (void)conv(m, z, 1, 8, (int64_t)n * CHANNELS);
  laci_free(parts);
}
static void make_slices(many *m, int n) {
  begin(m, (int64_t)n * CHANNELS);
  int y = value_of(m, "conv", 0), *parts = laci_alloc((size_t)n, sizeof *parts);
  int axes = store(m, "axes", 0, LAC_DTYPE_I64, (laci_shape){1, {1}}, (const int64_t[]){1});
  for (int at = 0; at < n; at++) {
    laci_shape one = {1, {1}};
    int64_t from = (int64_t)at * CHANNELS, to = from + CHANNELS;
    int first = store(m, "from", at, LAC_DTYPE_I64, one, &from);
    int last = store(m, "to", at, LAC_DTYPE_I64, one, &to);
    parts[at] = value_of(m, "slice", at);
    node(m, "Slice", (ports){4, (const int[]){y, first, last, axes}}, (ports){1, &parts[at]}, -1);
  }
  int z = value_of(m, "joined", -1);
  node(m, "Concat", (ports){n, parts}, (ports){1, &z}, 1);
  (void)conv(m, z, 1, 8, (int64_t)n * CHANNELS);
  laci_free(parts);
}

/* A chain of n nodes: every other one a layer. */
static void make_chain(many *m, int n) {
  begin(m, CHANNELS);
  int y = value_of(m, "conv", 0);
  for (int at = 2; at <= n / 2; at++) y = conv(m, a_relu(m, y, at), at, CHANNELS, CHANNELS);
  (void)conv(m, a_relu(m, y, 1), 1, CHANNELS, CHANNELS);
}

/* Bytes that analysis, a plan, its certificate and its file take. */
static size_t bytes_of(void (*make)(many *, int), int n) {
  many m;
  laci_analysis *a = NULL;
  laci_plan *plan = NULL;
  char *text;
  laci_rules rules = {.pattern = {2, 4}, .all_sizes = true, .recurrent = true};
  make(&m, n);
  if (laci_graph_add_output(m.graph, "conv1", &m.err) || laci_graph_finish(m.graph, &m.err))
    fail_msg("%s", m.err.text);
  size_t before = laci_memory_total_allocated();
  if (laci_graph_infer(m.graph, NULL, 0, &m.err) || laci_analyze(m.graph, &rules, &a, &m.err) ||
      laci_plan_create(a, &plan, &m.err)) {
    fail_msg("%s", m.err.text);
  }
  assert_true(a->n_searchable > 0);
  if (laci_permutation_text(plan, rules.pattern, 0, &text, &m.err)) fail_msg("%s", m.err.text);
  size_t bytes = laci_memory_total_allocated() - before;
  laci_free(text);
  laci_plan_destroy(plan);
  laci_analysis_destroy(a);
  laci_graph_destroy(m.graph);
  return bytes;
}

static void work_grows_with_the_number_of_ports(void **state) {
  (void)state;
  static const struct {
    const char *name;
    void (*make)(many *, int);
  } cases[] = {{"one value joined many times", make_same},
               {"many values joined", make_relus},
               {"many layers joined", make_convs},
               {"blocks that groups share", make_threes},
               {"many numbers added", make_sum},
               {"many parts of one value", make_parts},
               {"many slices", make_slices}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    size_t few = bytes_of(cases[k].make, FEW), more = bytes_of(cases[k].make, TIMES * FEW);
    if (more > 2 * TIMES * few) /* doubled rooms take up to twice */
      fail_msg("%s: %zu bytes, %d times as many: %zu", cases[k].name, few, TIMES, more);
  }
}

static double seconds_of_chain(int n) {
  clock_t before = clock();
  (void)bytes_of(make_chain, n);
  return (double)(clock() - before) / CLOCKS_PER_SEC;
}

/* Eight times the nodes: thrice eight times the time is no square, which would be 64 times. */
static void time_grows_with_the_number_of_nodes(void **state) {
  (void)state;
  double few = seconds_of_chain(FEW_NODES), more = seconds_of_chain(TIMES_NODES * FEW_NODES);
  if (more > 3 * TIMES_NODES * few)
    fail_msg("%d nodes: %g s, %d times as many: %g", FEW_NODES, few, TIMES_NODES, more);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(work_grows_with_the_number_of_ports),
                                     cmocka_unit_test(time_grows_with_the_number_of_nodes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
