/* SPDX-License-Identifier: Apache-2.0
 * NaN and infinities through every operator and every plan of the fast engine: what is not finite
 * in the plain engine's result is not finite in the fast one's, and what is finite there stays so.
 *
 * Two kinds of networks: those of a table, which hold the plans that there are (masks, attention,
 * pads, bytes, fused nodes), and random ones, of each operator in turn, followed by what may lose a
 * NaN. Each is given one odd number at one place: an input, a weight, a bias, a scale, a mask.
 * LAC_RANDOM_GRAPHS sets how many random networks there are and LAC_RANDOM_SEED where they start;
 * the first has the table in full, too. Next: cpu_engine_finite.c, which has larger layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/engine_check.h"
#include "support/random_ops.h"

#include "base/log.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "support/random_net.h"
#include "tensor/buf.h"

enum { DEFAULT_GRAPHS = 60, SLICE = 23, TEXT = 4096 };

static long number_from(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text ? strtol(text, NULL, 10) : otherwise;
}

/* ---- Odd numbers at a place ---- */

typedef struct poison {
  int value; /* an input or a stored tensor */
  int64_t at, n;
  float number;
} poison;

/** Inputs and stored tensors of f32, whose elements can be odd; returns how many there are. */
static int places_of(const laci_graph *graph, int values[MAX_PORTS]) {
  int n = 0;
  for (int v = 0; v < graph->n_values && n < MAX_PORTS; v++) {
    const laci_value *value = &graph->values[v];
    if (value->producer < 0 && value->type.dtype == LAC_DTYPE_F32 && value->n_readers > 0 &&
        laci_shape_count(&value->type.shape) > 0)
      values[n++] = v;
  }
  return n;
}

enum { N_NUMBERS = 3, N_SPREADS = 4, N_POISONS = N_NUMBERS * N_SPREADS };

/** Number k of those for a place: its first element, its last, one between, all. */
static poison poison_of(const laci_graph *graph, int value, int k) {
  static const float numbers[N_NUMBERS] = {NAN, INFINITY, -INFINITY};
  const int64_t n = laci_shape_count(&graph->values[value].type.shape);
  const int64_t begins[N_SPREADS] = {0, n - 1, n / 2, 0};
  const int spread = k / N_NUMBERS;
  return (poison){value, begins[spread], spread == 3 ? n : 1, numbers[k % N_NUMBERS]};
}

/** Puts it in, or takes it out again: `old` is the value that was there. */
static void exchange(const laci_graph *graph, laci_buf **inputs, const poison *p, float *old,
                     bool back) {
  const int stored = graph->values[p->value].stored;
  float *w = stored >= 0 ? (float *)(uintptr_t)graph->stored[stored].bytes : NULL;
  double *x = NULL;
  for (int port = 0; port < graph->n_inputs; port++) {
    if (graph->inputs[port] == p->value) x = inputs[port]->f;
  }
  for (int64_t k = 0; k < p->n; k++) {
    const int64_t at = p->at + k;
    if (!back) old[k] = w ? w[at] : (float)x[at];
    if (w) w[at] = back ? old[k] : p->number;
    else x[at] = (double)(back ? old[k] : p->number);
  }
}

/* ---- Comparing ---- */

static const char *plan_in_force = ""; /* for messages */
static long n_run, n_refused, n_wrong;

static bool jumps(const laci_graph *graph) {
  for (int n = 0; n < graph->n_nodes; n++) {
    if (!graph->nodes[n].op || graph->nodes[n].op->discontinuous) return true;
  }
  return false;
}

/** What is wrong with the fast engine's numbers; NULL: nothing is. close: they are the same. */
static const char *judge(const laci_engine_port *port, const void *got, const laci_buf *want,
                         double tolerance, bool close) {
  const double scale = buf_scale(want);
  for (int64_t i = 0; i < want->count; i++) {
    if (port->type.dtype == LAC_DTYPE_I64) {
      if (close && ((const int64_t *)got)[i] != want->i[i]) return "another integer";
      continue;
    }
    const double x = (double)((const float *)got)[i], y = want->f[i];
    if (!isfinite(y) && isfinite(x)) return "lost";
    if (isfinite(y) && fabs(y) < 1e30 && !isfinite(x)) return "not finite, though the answer is";
    if (close && !number_close(x, y, tolerance * (scale > 0 ? scale : 1))) return "another number";
  }
  return NULL;
}

static void compare_runs(const char *text, const laci_graph *graph, laci_buf **inputs,
                         laci_engine *engine, const poison *p, double tolerance) {
  const laci_engine_port *in, *out;
  const void *read[MAX_PORTS];
  void *written[MAX_PORTS];
  lac_error err = {0};
  const char *wrong = NULL;
  const int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
  for (int at = 0; at < n_in; at++) read[at] = pack(&in[at], inputs[at]);
  for (int at = 0; at < n_out; at++) written[at] = laci_alloc(out[at].size_bytes + 1, 1);
  laci_stepper *plain = NULL;
  lac_status st = laci_engine_run(engine, read, written, &err), exact;
  exact = walk_open(graph, NULL, &plain, NULL);
  for (int at = 0; at < graph->n_inputs && !exact; at++)
    laci_stepper_set_value(plain, graph->inputs[at], buf_copy(inputs[at]));
  if (!exact) exact = walk_all(plain, graph, NULL);
  if (!st != !exact) wrong = st ? err.text : "run, though the plain engine fails";
  for (int at = 0; at < n_out && !exact && !wrong; at++) {
    wrong = judge(&out[at], written[at], laci_stepper_value(plain, graph->outputs[at]), tolerance,
                  !jumps(graph));
  }
  n_run++;
  if (wrong) {
    n_wrong++;
    print_error("%s: %g in %s from %lld of %lld, %s\n%s%s", wrong, (double)p->number,
                p->value < 0 ? "nothing" : graph->values[p->value].name, (long long)p->at,
                (long long)p->n, plan_in_force, text, laci_engine_plan_text(engine));
  }
  for (int at = 0; at < n_out; at++) laci_free(written[at]);
  for (int at = 0; at < n_in; at++) laci_free((void *)(uintptr_t)read[at]);
  laci_stepper_destroy(plain);
}

/** A network, and one engine for all that comes in with its inputs. */
typedef struct tried {
  const char *text;
  laci_graph *graph;
  laci_buf *inputs[MAX_PORTS];
  laci_engine *engine; /* of ordinary weights */
  laci_engine_options options;
  double tolerance;
} tried;

static void try_open(tried *t) {
  lac_error err = {0};
  if (net_read(t->text, &t->graph, &err)) fail_msg("%s\n%s", err.text, t->text);
  for (int at = 0; at < t->graph->n_inputs; at++)
    t->inputs[at] = run_source(t->graph, t->graph->inputs[at]);
  if (laci_engine_create(t->graph, &t->options, &t->engine, &err)) n_refused++;
}

static void try_close(tried *t) {
  for (int at = 0; at < t->graph->n_inputs; at++) laci_buf_destroy(t->inputs[at]);
  laci_engine_destroy(t->engine);
  laci_graph_destroy(t->graph);
}

static void try_poison(tried *t, const poison *p) {
  float *old = laci_alloc((size_t)p->n, sizeof *old);
  laci_engine *engine = t->engine;
  lac_error err = {0};
  const bool stored = t->graph->values[p->value].stored >= 0;
  exchange(t->graph, t->inputs, p, old, false);
  if (stored && laci_engine_create(t->graph, &t->options, &engine, &err)) n_refused++;
  if (engine) compare_runs(t->text, t->graph, t->inputs, engine, p, t->tolerance);
  if (stored) laci_engine_destroy(engine);
  exchange(t->graph, t->inputs, p, old, true);
  laci_free(old);
}

/* ---- The plans ---- */

typedef struct plan {
  const char *variable, *value; /* of the environment; NULL: as the engine chooses */
  laci_engine_options options;
  double tolerance;
} plan;

static const plan plans[] = {
    {"LAC_SPARSE", "0", {.threads = 2}, 1e-3},
    {NULL, NULL, {.threads = 2}, 1e-3},
    {"LAC_SPARSE", "all", {.threads = 2}, 1e-3},
    {"LAC_ALGORITHM", "csr", {.threads = 1}, 1e-3},
    {"LAC_ALGORITHM", "winograd", {.threads = 2}, 1e-3},
    {NULL, NULL, {.threads = 2, .bf16 = true}, 0.1},
};

/** All but bf16 where the processor lacks it, which is said. */
static int n_plans(void) {
  const int n = sizeof plans / sizeof *plans;
  static bool said;
  const bool bf16 = laci_engine_find_dtype_support(NULL, LAC_DTYPE_BF16) == LACI_DTYPE_HERE;
  if (!bf16 && !said) print_message("no plan in bf16: this processor has no such instructions\n");
  said = true;
  return bf16 ? n : n - 1;
}

static void plan_as_engine_chooses(void) {
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
  plan_in_force = "as the engine chooses";
}

static tried try_of(const char *text, const plan *p) {
  plan_as_engine_chooses();
  if (p->variable) {
    assert_int_equal(setenv(p->variable, p->value, 1), 0);
    plan_in_force = p->value;
  }
  return (tried){.text = text, .options = p->options, .tolerance = p->tolerance};
}

static void nothing_is_wrong(void) {
  plan_as_engine_chooses();
  print_message("%ld runs, %ld plans refused, %ld wrong\n", n_run, n_refused, n_wrong);
  assert_true(n_run > 0);
  assert_int_equal(n_wrong, 0);
}

/* ---- The table ---- */

#define IMAGE "input x 1x8x6x6\n"
#define CONVS                                                                               \
  IMAGE                                                                                     \
  "stored w 8x8x3x3 pruned\nstored b 8\nstored q 8x8x1x1 pruned\nstored d 8x1x3x3 pruned\n" \
  "stored low \"\" = -0.4\nstored high \"\" = 0.9\nstored inf \"\" = -inf\n"
#define HEADS                                                                                 \
  "input q 1x2x5x8\ninput k 1x2x6x8\ninput v 1x2x6x4\ninput m 1x1x5x6\nstored w 4x3 pruned\n" \
  "t = Transpose(k) perm=0,1,3,2\ns = MatMul(q, t)\n"
#define ROWS "input x 2x5x8\nstored w 8x8 pruned\nstored b 8\nstored g 8 positive\n"
#define MASKED                                                                                     \
  "input c 5x8\nstored zero \"\" = 0\nstored ninf \"\" = -inf\nstored most \"\" = -3.4028235e38\n" \
  "k = Greater(c, zero)\n"
#define BYTES(to, from) \
  "q" to " = QuantizeLinear(" from ", sx, zx)\n" to " = DequantizeLinear(q" to ", sx, zx)\n"
#define QUANTIZED                                                                                 \
  "input x 1x16x6x6\nstored sx \"\" = 0.0103\nstored zx \"\" u8 = 110\nstored sw \"\" = 0.0197\n" \
  "stored qv 16x16x1x1 i8\nv = DequantizeLinear(qv, sw)\nstored qu 16x16x3x3 i8\n"                \
  "stored su 16 positive\nu = DequantizeLinear(qu, su) axis=0\nstored b 16\n"

static const char *const nets[] = {
    /* Convolutions with all that is fused to them. */
    CONVS "a = Conv(x, w, b) pads=1,1,1,1\ny = Relu(a)\n",
    CONVS "a = Conv(x, w) pads=1,1,1,1\nt = Add(a, x)\nr = Relu(t)\ny = Conv(r, q, b)\n",
    CONVS "a = Conv(x, q, b)\nc = Clip(a, low, high)\ny = Conv(c, w) pads=1,1,1,1\n",
    CONVS
    "a = Conv(x, q)\nc = Clip(a, low, high)\nl = LeakyRelu(c)\ny = Max(l, b0, l)\n"
    "stored b0 1x8x1x1\n",
    CONVS "a = Conv(x, d, b) group=8 pads=1,1,1,1\nh = HardSwish(a)\ny = Conv(h, q)\n",
    CONVS "a = Conv(x, q)\ns = Sigmoid(a)\nm = Mul(a, s)\ny = Conv(m, q)\n",
    CONVS
    "a = Conv(x, q, b)\nz = BatchNormalization(a, b, c1, c2, c3)\ny = Relu(z)\n"
    "stored c1 8\nstored c2 8\nstored c3 8 positive\n",
    CONVS "y = com.microsoft.FusedConv(x, w, b) pads=1,1,1,1 activation=\"Relu\"\n",
    CONVS "t = ConvTranspose(x, q)\ny = Relu(t)\n",
    /* Pools, and pads of what a pool does not see. */
    CONVS
    "a = Conv(x, w) pads=1,1,1,1\nr = Relu(a)\np = MaxPool(r) kernel_shape=2,2 strides=2,2\n"
    "y = Conv(p, q)\n",
    CONVS
    "stored p4 8 i64 = 0 0 1 1 0 0 1 1\na = Conv(x, q)\ne = Pad(a, p4, inf)\n"
    "p = MaxPool(e) kernel_shape=3,3 strides=2,2\nz = Relu(p)\ny = Conv(z, q)\n",
    CONVS
    "stored p4 8 i64 = 0 0 3 0 0 0 0 3\ne = Pad(x, p4, inf)\n"
    "p = MaxPool(e) kernel_shape=2,2\ny = Relu(p)\n",
    CONVS "p = MaxPool(x) kernel_shape=1,3 pads=1,0,0,0\ny = Conv(p, q)\n",
    CONVS "a = AveragePool(x) kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1\ny = Relu(a)\n",
    CONVS "a = AveragePool(x) kernel_shape=2,2 pads=2,2,0,0\ny = Relu(a)\n",
    CONVS "g = GlobalMaxPool(x)\nh = GlobalAveragePool(x)\ns = Add(g, h)\ny = Relu(s)\n",
    CONVS "l = LRN(x) size=3\ny = Relu(l)\n",
    CONVS
    "stored s4 4 = 1 1 2 2\nz = Resize(x, _, s4) mode=\"linear\"\nr = Relu(z)\ny = Conv(r, q)\n",
    CONVS "stored s4 4 = 1 1 0.5 0.5\nz = Resize(x, _, s4) mode=\"nearest\"\ny = Relu(z)\n",
    CONVS
    "stored one 1 i64 = 2\nt, i = TopK(x, one)\nr = Relu(t)\nn = ReduceMax(r) keepdims=0\n"
    "y = Identity(i)\noutput n\n",
    CONVS
    "a = ArgMax(x) axis=1\ny = Cast(a) to=1\nm = ReduceMin(x) keepdims=1\nr = Relu(m)\n"
    "output r\n",
    CONVS "stored z1 1x8x1x1\na = Min(x, z1)\nc = Max(a, low)\ny = Relu(c)\n",
    /* Products, norms and softmaxes. */
    ROWS "a = MatMul(x, w)\nc = Add(a, b)\ny = Relu(c)\n",
    ROWS "a = MatMul(x, w)\ng1 = Gelu(a)\nc = MatMul(g1, w)\ny = Add(c, x)\n",
    ROWS "l = LayerNormalization(x, g, b)\na = MatMul(l, w)\ny = Relu(a)\n",
    ROWS "n = RMSNormalization(x, g)\na = MatMul(n, w)\ny = Relu(a)\n",
    ROWS
    "m = ReduceMean(x) axes=2, keepdims=1\nd1 = Sub(x, m)\ns = Softmax(d1)\ny = Relu(s)\n"
    "opset 22\n",
    ROWS "l = LogSoftmax(x)\nr = Relu(l)\ny = MatMul(r, w)\n",
    ROWS
    "f = Flatten(x) axis=2\na = Gemm(f, w, b) transB=1\nr = Relu(a)\nc = Gemm(r, w, b)\n"
    "y = Softmax(c)\n",
    ROWS "e = Exp(x)\nl = Log(e)\nt = Sqrt(e)\nr = Relu(l)\nu = Relu(t)\ny = Add(r, u)\n",
    ROWS "p1 = Pow(x, two)\nr = Relu(p1)\ny = MatMul(r, w)\nstored two \"\" = 2\n",
    /* Masks: infinities that belong there. */
    ROWS MASKED
    "h = Where(k, x, ninf)\nn = ReduceMax(h, ax) keepdims=0\nr = Relu(n)\n"
    "y = MatMul(r, w)\nstored ax 1 i64 = 1\n",
    ROWS MASKED "h = Where(k, x, most)\ns = Softmax(h)\nr = Relu(s)\ny = MatMul(r, w)\n",
    ROWS MASKED
    "h = Where(k, x, ninf)\nn = Concat(h, x) axis=1\nm = Max(n, b)\nr = Relu(m)\n"
    "y = MatMul(r, w)\n",
    HEADS
    "p = Softmax(s)\no = MatMul(p, v)\nr = Relu(o)\ny = MatMul(r, w)\nz = Identity(m)\n"
    "output z\n",
    HEADS "a = Add(s, m)\np = Softmax(a)\no = MatMul(p, v)\nr = Relu(o)\ny = MatMul(r, w)\n",
    HEADS "a = Add(s, m)\np = Softmax(a)\no = MatMul(p, v)\nl = LeakyRelu(o)\ny = Max(l, l)\n",
    HEADS
    "a = Add(s, m)\np = Softmax(a)\nn = IsNaN(p)\nstored zero \"\" = 0\nu = Where(n, zero, p)\n"
    "o = MatMul(u, v)\ny = Relu(o)\n",
    "input q 1x2x5x8\ninput k 1x2x6x8\ninput v 1x2x6x4\ninput m 5x6\no = Attention(q, k, v, m)\n"
    "y = Relu(o)\n",
    /* Bytes. */
    QUANTIZED BYTES("d", "x") "y = Conv(d, v, b)\n",
    QUANTIZED BYTES("d", "x") "a = Conv(d, v)\ny = Relu(a)\n",
    QUANTIZED BYTES("d", "x") "a = Conv(d, u) pads=1,1,1,1\nr = Relu(a)\n" BYTES(
        "e", "r") "y = Conv(e, v, b)\n",
    QUANTIZED BYTES("d", "x") "a = Conv(d, v)\nc = Add(a, x)\nr = Relu(c)\n" BYTES(
        "e", "r") "p = MaxPool(e) kernel_shape=2,2\n" BYTES("f",
                                                            "p") "y = Conv(f, u) pads=1,1,1,1\n",
    QUANTIZED BYTES("d", "x") "a = Conv(d, v)\nh = HardSwish(a)\n" BYTES("y", "h"),
};
enum { N_NETS = sizeof nets / sizeof *nets };

static const char *text_of(int net) {
  static char text[TEXT];
  (void)snprintf(text, sizeof text, "%soutput y\n", nets[net]);
  return text;
}

static void known_networks_lose_nothing(void **state) {
  (void)state;
  const int step = number_from("LAC_RANDOM_GRAPHS", 0) > DEFAULT_GRAPHS ? 1 : SLICE;
  int round = 0;
  n_run = n_refused = n_wrong = 0;
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  for (int net = 0; net < N_NETS; net++) {
    for (int p = 0; p < n_plans(); p++) {
      if (step > 1 && (net + p) % n_plans() >= 2) continue;
      tried t = try_of(text_of(net), &plans[p]);
      int places[MAX_PORTS];
      try_open(&t);
      const poison none = {.value = -1};
      assert_non_null(t.engine);
      compare_runs(t.text, t.graph, t.inputs, t.engine, &none, t.tolerance);
      const int n = places_of(t.graph, places);
      for (int k = 0; k < n * N_POISONS; k++) {
        if (round++ % step) continue;
        const poison one = poison_of(t.graph, places[k / N_POISONS], k % N_POISONS);
        try_poison(&t, &one);
      }
      try_close(&t);
    }
  }
  nothing_is_wrong();
}

/** Attention's own kernel sees its mask: a NaN in it, and a row that has no key. */
static void masks_of_attention_lose_nothing(void **state) {
  (void)state;
  n_run = n_refused = n_wrong = 0;
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  for (int net = 0; net < N_NETS; net++) {
    if (strncmp(nets[net], HEADS "a = Add(s, m)\n", strlen(HEADS "a = Add(s, m)\n")) != 0) continue;
    tried t = try_of(text_of(net), &plans[1]);
    try_open(&t);
    assert_non_null(t.engine);
    assert_int_equal(count_text(laci_engine_plan_text(t.engine), "Attention + mask"), 1);
    for (int k = 0; k < N_POISONS; k++) {
      const poison one = poison_of(t.graph, laci_graph_find_value(t.graph, "m"), k);
      try_poison(&t, &one);
    }
    try_close(&t);
  }
  assert_int_equal(n_run, 3 * N_POISONS);
  nothing_is_wrong();
}

/* ---- Infinities that belong there ---- */

static void count_warning(lac_log_level level, const char *line, void *context) {
  (void)level, (void)line;
  ++*(int *)context;
}

/** What a pad or a mask fills with and nobody sees: no run is done twice, which would be said. */
static void fillings_of_pads_and_masks_cost_no_second_run(void **state) {
  static const char *const fillings[] = {"-inf", "-3.4028235e38"};
  static const char *const filled[] = {
      "e = Pad(x, p4, f)\np = MaxPool(e) kernel_shape=3,3\nz = Relu(p)\ny = Conv(z, q)\n",
      ("a = Conv(x, q)\ne = Pad(a, p4, f)\np = MaxPool(e) kernel_shape=3,3 strides=2,2\n"
       "y = Conv(p, q)\n"),
      "e = Pad(x, p4, f)\nn = Concat(e, e) axis=1\np = MaxPool(n) kernel_shape=3,3\ny = Relu(p)\n",
      "h = Where(k, x, f)\nn = ReduceMax(h) axes=2,3 keepdims=1\ny = Conv(n, q)\nopset 22\n",
      "h = Where(k, x, f)\nt = Transpose(h) perm=0,2,3,1\ns = Softmax(t)\ny = Relu(s)\n",
      "h = Where(k, x, f)\nn = Max(h, b)\nl = Clip(n, low, high)\ny = Conv(l, q)\n",
  };
  (void)state;
  int n_said = 0;
  lac_log_set(LAC_LOG_WARNING, count_warning, &n_said);
  for (size_t f = 0; f < 2; f++) {
    for (size_t net = 0; net < sizeof filled / sizeof *filled; net++) {
      char text[TEXT];
      (void)snprintf(text, sizeof text,
                     IMAGE
                     "input c 1x8x6x6\nstored q 8x8x1x1 pruned\nstored b 8x1x1\n"
                     "stored p4 8 i64 = 0 0 1 1 0 0 1 1\nstored low \"\" = -0.4\n"
                     "stored high \"\" = 0.9\nstored zero \"\" = -0.5\nstored f \"\" = %s\n"
                     "k = Greater(c, zero)\nopset 13\n%soutput y\n",
                     fillings[f], filled[net]);
      n_wrong = 0;
      tried t = try_of(text, &plans[1]);
      try_open(&t);
      assert_non_null(t.engine);
      const poison none = {.value = -1};
      compare_runs(text, t.graph, t.inputs, t.engine, &none, t.tolerance);
      if (n_said > 0) fail_msg("%d warnings: the run was done twice\n%s", n_said, text);
      assert_int_equal(n_wrong, 0);
      try_close(&t);
    }
  }
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
}

/* ---- Random networks ---- */

/** What follows the operator: kernels that take the larger number, compare, or skip zeros. */
static const char *const losers[] = {"Relu",        "Relu",      "Clip",      "MaxPool", "Max",
                                     "Min",         "ReduceMax", "Conv",      "MatMul",  "Softmax",
                                     "Where",       "LeakyRelu", "HardSwish", "Sigmoid", "Greater",
                                     "AveragePool", "TopK",      "Gemm"};
enum { N_LOSERS = sizeof losers / sizeof *losers };

static bool make_losing(builder *m, uint64_t seed, const char *op) {
  static const char *const inputs[] = {"1x3x4x4", "2x3x3x3", "2x4", "1x3x4", "2x4x3", "5"};
  *m = (builder){.seed = seed};
  if (laci_graph_create(&m->graph, NULL)) return false;
  if (chance(m, 60)) {
    add_first_lines(m);
  } else {
    add(m, "input x %s\n", inputs[draw(m, sizeof inputs / sizeof *inputs)]);
    (void)keep(m, 0);
  }
  if (chance(m, 40)) (void)try_op(m, losers[draw(m, N_LOSERS)]);
  if (!try_op(m, op)) return false;
  for (int64_t n = draw(m, 3); n >= 0; n--) (void)try_op(m, losers[draw(m, N_LOSERS)]);
  add_last_lines(m);
  return keep(m, m->n) && m->graph->n_outputs > 0 &&
         m->graph->n_inputs + m->graph->n_outputs < MAX_PORTS;
}

/** One odd number anywhere, in one of the plans. */
static void try_random(const char *text, uint64_t seed) {
  tried t = try_of(text, &plans[seed % (uint64_t)n_plans()]);
  int places[MAX_PORTS];
  try_open(&t);
  const int n = places_of(t.graph, places);
  if (t.engine && n > 0) {
    const int place = (int)laci_rng_integer_below(seed, 1, 0, (uint64_t)n);
    const int k = (int)laci_rng_integer_below(seed, 1, 1, N_POISONS);
    const poison one = poison_of(t.graph, places[place], k);
    try_poison(&t, &one);
  }
  try_close(&t);
}

static void every_operator_loses_nothing(void **state) {
  (void)state;
  const long n = number_from("LAC_RANDOM_GRAPHS", DEFAULT_GRAPHS);
  const long first = number_from("LAC_RANDOM_SEED", 0);
  int n_ops;
  const laci_op *const *ops = drawn_ops(&n_ops);
  builder *m = malloc(sizeof *m);
  n_run = n_refused = n_wrong = 0;
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  for (long seed = first; seed < first + n && m; seed++) {
    /* few networks take operators from all over the list */
    const long op = n < n_ops ? (seed - first) * n_ops / n : seed % n_ops;
    if (make_losing(m, (uint64_t)seed, key_of(ops[op]).text)) try_random(m->text, (uint64_t)seed);
    laci_graph_destroy(m->graph);
  }
  free(m);
  nothing_is_wrong();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_networks_lose_nothing),
      cmocka_unit_test(masks_of_attention_lose_nothing),
      cmocka_unit_test(fillings_of_pads_and_masks_cost_no_second_run),
      cmocka_unit_test(every_operator_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
