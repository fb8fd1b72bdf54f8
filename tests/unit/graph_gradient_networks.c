/* SPDX-License-Identifier: Apache-2.0
 * Training graphs of whole networks against PyTorch in float64 (tests/fixtures/gradient, made by
 * tools/models/gradient_torch.py): loss, every gradient, running statistics. And what a training
 * graph takes, leaves out and refuses. The ResNet-20 case needs ../shared and is skipped without.
 */
#include "support/gradient_check.h"

#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "graph/untrained.h"
#include "onnx/onnx.h"
#include "tensor/buf.h"

/* ---- Fixtures: `name shape = numbers` a line */

typedef struct fixture {
  char *text;
} fixture;

static bool fixture_open(fixture *from, const char *path) {
  FILE *file = fopen(path, "rb");
  from->text = NULL;
  if (!file) return false;
  (void)fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  from->text = laci_alloc((size_t)size + 1, 1);
  assert_int_equal(fread(from->text, 1, (size_t)size, file), size);
  (void)fclose(file);
  return true;
}

/** Numbers of the array kind + name; their count, -1: there is none. */
static int64_t fixture_read(const fixture *from, const char *kind, const char *name, double *to,
                            int64_t capacity) {
  char start[256];
  int length = snprintf(start, sizeof start, "%s%s ", kind, name);
  const char *at = from->text;
  while (at && strncmp(at, start, (size_t)length) != 0) {
    at = strchr(at, '\n');
    if (at) at++;
  }
  if (!at) return -1;
  const char *end = strchr(at, '\n');
  int64_t n = 0;
  at = strchr(at, '=') + 1;
  while (n < capacity) {
    char *next;
    double x = strtod(at, &next);
    if (next == at || next > end) break;
    to[n++] = x;
    at = next;
  }
  return n;
}

/* ---- Running a training graph */

static laci_training_graph *make_training(const laci_graph *model, int64_t batch) {
  lac_error err = {0};
  laci_training_graph *made;
  laci_training_options options = {.batch = batch};
  if (laci_training_graph_create(model, &options, &made, &err)) fail_msg("%s", err.text);
  return made;
}

static laci_buf *buf_for(const laci_graph *graph, int value) {
  laci_buf *buf;
  const laci_type *type = &graph->values[value].type;
  assert_int_equal(laci_buf_create(type->dtype, &type->shape, &buf, NULL), LAC_OK);
  return buf;
}

static void set_from(laci_stepper *run, const laci_graph *graph, int value, const fixture *from,
                     const char *kind, const char *name) {
  laci_buf *buf = buf_for(graph, value);
  if (fixture_read(from, kind, name, buf->f, buf->count) != buf->count)
    fail_msg("the fixture has no %s%s of %lld numbers", kind, name, (long long)buf->count);
  laci_stepper_set_value(run, value, buf);
}

static void expect(const laci_stepper *run, int value, const fixture *from, const char *kind,
                   const char *name, double tolerance) {
  const laci_buf *got = laci_stepper_value(run, value);
  assert_non_null(got);
  double *want = laci_alloc((size_t)got->count + 1, sizeof *want);
  int64_t n = fixture_read(from, kind, name, want, got->count);
  if (n != got->count) fail_msg("%s%s: %lld numbers in the fixture", kind, name, (long long)n);
  for (int64_t i = 0; i < n; i++) {
    if (!(fabs(got->f[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
      fail_msg("%s%s[%lld] is %.12g, PyTorch has %.12g", kind, name, (long long)i, got->f[i],
               want[i]);
  }
  laci_free(want);
}

static void check_network(const char *name, const char *net, int64_t batch, int n_params,
                          int n_stats) {
  char path[512];
  lac_error err = {0};
  fixture from;
  laci_graph *model;
  laci_stepper *run;
  (void)snprintf(path, sizeof path, "%s/tests/fixtures/gradient/%s.txt", LAC_SOURCE_DIR, name);
  assert_true(fixture_open(&from, path));
  if (net_read(net, &model, &err)) fail_msg("%s: %s", name, err.text);
  laci_training_graph *to = make_training(model, batch);
  assert_int_equal(to->n_params, n_params);
  assert_int_equal(to->n_stats, n_stats);
  assert_int_equal(walk_open(to->graph, NULL, &run, &err), LAC_OK);
  set_from(run, to->graph, to->images, &from, "", "x");
  set_from(run, to->graph, to->labels, &from, "", "labels");
  for (int at = 0; at < to->n_params; at++)
    set_from(run, to->graph, to->params[at].input, &from, "p/", to->params[at].name);
  for (int at = 0; at < to->n_stats; at++)
    set_from(run, to->graph, to->stats[at].input, &from, "p/", to->stats[at].name);
  if (walk_all(run, to->graph, &err)) fail_msg("%s: %s", name, err.text);
  /* Attributes are f32: 0.1, 1/6 and 0.001 are not quite what PyTorch has. */
  expect(run, to->loss, &from, "", "loss", 1e-8);
  for (int at = 0; at < to->n_params; at++)
    expect(run, to->params[at].gradient, &from, "g/", to->params[at].name, 1e-7);
  for (int at = 0; at < to->n_stats; at++)
    expect(run, to->stats[at].update, &from, "u/", to->stats[at].name, 1e-7);
  laci_stepper_destroy(run);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
  laci_free(from.text);
}

#define NORM(n, channels)                                                            \
  "stored n" n ".weight " channels " f64\nstored n" n ".bias " channels              \
  " f64\n"                                                                           \
  "stored n" n ".running_mean " channels " f64\nstored n" n ".running_var " channels \
  " f64 positive\n"
#define NORMED(to, x, n)                                                                 \
  to " = BatchNormalization(" x ", n" n ".weight, n" n ".bias, n" n ".running_mean, n" n \
     ".running_var) "

static const char bottleneck[] =
    "input x 1x4x5x5 f64\n"
    "stored c1.weight 3x4x1x1 f64\nstored c2.weight 3x3x3x3 f64\nstored c3.weight 8x3x1x1 f64\n"
    "stored cs.weight 8x4x1x1 f64\nstored fc.weight 3x8 f64\nstored fc.bias 3 f64\n" NORM(
        "1", "3") NORM("2", "3") NORM("3", "8") NORM("s", "8") "a1 = Conv(x, c1.weight)\n" NORMED("b1", "a1", "1") "\n"
    "r1 = Relu(b1)\na2 = Conv(r1, c2.weight) strides=2,2 pads=1,1,1,1\n" NORMED(
        "b2", "a2", "2") "\nr2 = Relu(b2)\na3 = Conv(r2, c3.weight)\n" NORMED("b3", "a3", "3") "\n"
    "as = Conv(x, cs.weight) strides=2,2\n" NORMED("bs", "as", "s") "\ns = Add(b3, bs)\nr3 = Relu(s)\n"
    "p = GlobalAveragePool(r3)\nf = Flatten(p)\ny = Gemm(f, fc.weight, fc.bias) transB=1\n"
    "z = Softmax(y)\noutput z\n";

static const char mobile[] =
    "input x 1x3x8x8 f64\n"
    "stored c1.weight 4x3x3x3 f64\nstored c2.weight 4x1x3x3 f64\nstored s1.weight 2x4x1x1 f64\n"
    "stored s1.bias 2 f64\nstored s2.weight 4x2x1x1 f64\nstored s2.bias 4 f64\n"
    "stored c3.weight 6x4x1x1 f64\nstored c3.bias 6 f64\nstored fc.weight 4x24 f64\n"
    "stored fc.bias 4 f64\nstored four \"\" f64 = 4\nstored low \"\" f64 = 0\n"
    "stored high \"\" f64 = 6\n" NORM("1", "4") NORM("2", "4") "a1 = Conv(x, c1.weight) pads=1,1,1,1\n" NORMED("b1", "a1", "1") "momentum=0.75\n"
    "r1 = HardSwish(b1)\na2 = Conv(r1, c2.weight) strides=2,2 pads=1,1,1,1 group=4\n" NORMED(
        "b2", "a2", "2") "epsilon=0.001\nm2 = Mul(b2, four)\nr2 = Clip(m2, low, high)\n"
    "g0 = GlobalAveragePool(r2)\ng1 = Conv(g0, s1.weight, s1.bias)\ng2 = Relu(g1)\n"
    "g3 = Conv(g2, s2.weight, s2.bias)\n"
    "g4 = HardSigmoid(g3) alpha=0.16666666666\ng5 = Mul(r2, g4)\n"
    "a3 = Conv(g5, c3.weight, c3.bias)\n"
    "q = MaxPool(a3) kernel_shape=3,3 strides=2,2 pads=1,1,1,1\nf = Flatten(q)\n"
    "y = Gemm(f, fc.weight, fc.bias) transB=1\noutput y\n";

static const char attention[] =
    "input x 2x3x8x8 f64\n"
    "stored patch.weight 8x3x4x4 f64\nstored patch.bias 8 f64\nstored place 1x4x8 f64\n"
    "stored l1.weight 8 f64\nstored l1.bias 8 f64\nstored l2.weight 8 f64\nstored l2.bias 8 f64\n"
    "stored l3.weight 8 f64\nstored l3.bias 8 f64\nstored qkv.weight 24x8 f64\n"
    "stored qkv.bias 24 f64\nstored out.weight 8x8 f64\nstored out.bias 8 f64\n"
    "stored up.weight 12x8 f64\nstored up.bias 12 f64\nstored down.weight 8x12 f64\n"
    "stored down.bias 8 f64\nstored fc.weight 5x8 f64\nstored fc.bias 5 f64\n"
    "stored two \"\" f64 = 2\nstored flat 3 i64 = 0 8 -1\nstored heads 5 i64 = 0 4 3 2 4\n"
    "stored joined 3 i64 = 0 4 8\nstored i0 \"\" i64 = 0\nstored i1 \"\" i64 = 1\n"
    "stored i2 \"\" i64 = 2\nstored one 1 i64 = 1\n"
    "a = Conv(x, patch.weight, patch.bias) strides=4,4\nb = Reshape(a, flat)\n"
    "c = Transpose(b) perm=0,2,1\nt = Add(c, place)\nn1 = LayerNormalization(t, l1.weight, "
    "l1.bias)\n"
    "w1 = Transpose(qkv.weight) perm=1,0\nm1 = MatMul(n1, w1)\nm = Add(m1, qkv.bias)\n"
    "h = Reshape(m, heads)\nhh = Transpose(h) perm=2,0,3,1,4\nq = Gather(hh, i0)\n"
    "k = Gather(hh, i1)\nv = Gather(hh, i2)\nkt = Transpose(k) perm=0,1,3,2\ns = MatMul(q, kt)\n"
    "d = Div(s, two)\np = Softmax(d)\no = MatMul(p, v)\not = Transpose(o) perm=0,2,1,3\n"
    "oj = Reshape(ot, joined)\nw2 = Transpose(out.weight) perm=1,0\nom = MatMul(oj, w2)\n"
    "ob = Add(out.bias, om)\nt2 = Add(t, ob)\nn2 = LayerNormalization(t2, l2.weight, l2.bias)\n"
    "w3 = Transpose(up.weight) perm=1,0\nu = MatMul(n2, w3)\nub = Add(u, up.bias)\ng = Gelu(ub)\n"
    "w4 = Transpose(down.weight) perm=1,0\nz = MatMul(g, w4)\nzb = Add(z, down.bias)\n"
    "t3 = Add(t2, zb)\nn3 = LayerNormalization(t3, l3.weight, l3.bias)\n"
    "e = ReduceMean(n3, one) keepdims=0\ny = Gemm(e, fc.weight, fc.bias) transB=1\noutput y\n";

static void a_bottleneck_block_is_pytorchs(void **state) {
  (void)state;
  check_network("bottleneck", bottleneck, 3, 14, 8);
}

static void depthwise_and_squeeze_excite_are_pytorchs(void **state) {
  (void)state;
  check_network("mobile", mobile, 2, 14, 4);
}

static void attention_is_pytorchs(void **state) {
  (void)state;
  check_network("attention", attention, 2, 19, 0);
}

/* ---- ResNet-20 */

/** Sum and sum of squares against the fixture's two numbers. */
static void expect_sums(const laci_stepper *run, int value, const fixture *from, const char *kind,
                        const char *name) {
  const laci_buf *got = laci_stepper_value(run, value);
  double want[2], sum = 0, squares = 0;
  assert_non_null(got);
  assert_int_equal(fixture_read(from, kind, name, want, 2), 2);
  for (int64_t i = 0; i < got->count; i++) {
    sum += got->f[i];
    squares += got->f[i] * got->f[i];
  }
  double scale = sqrt(want[1] * (double)got->count);
  if (!(fabs(squares - want[1]) <= 1e-6 * want[1] && fabs(sum - want[0]) <= 1e-6 * scale))
    fail_msg("%s%s: sums %.10g %.10g, PyTorch has %.10g %.10g", kind, name, sum, squares, want[0],
             want[1]);
}

/** The first images of CIFAR-10's first file, as the fixture's: x / 255, mean, deviation. */
static bool set_cifar(laci_stepper *run, const laci_training_graph *to) {
  static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  uint8_t record[3073];
  FILE *file = fopen(LAC_SOURCE_DIR "/../shared/data/cifar-10-batches-bin/data_batch_1.bin", "rb");
  if (!file) return false;
  laci_buf *x = buf_for(to->graph, to->images), *labels = buf_for(to->graph, to->labels);
  for (int64_t image = 0; image < to->batch; image++) {
    assert_int_equal(fread(record, 1, sizeof record, file), sizeof record);
    labels->f[image * to->n_classes + record[0]] = 1;
    for (int i = 0; i < 3072; i++)
      x->f[image * 3072 + i] = (record[i + 1] / 255.0 - mean[i / 1024]) / deviation[i / 1024];
  }
  (void)fclose(file);
  laci_stepper_set_value(run, to->images, x);
  laci_stepper_set_value(run, to->labels, labels);
  return true;
}

static void set_stored(laci_stepper *run, const laci_graph *model, int stored, int value) {
  const laci_stored *from = &model->stored[stored];
  laci_type type = {.dtype = from->dtype, .shape = from->shape};
  laci_buf *buf;
  assert_int_equal(laci_buf_from_bytes(&type, from->bytes, from->size_bytes, &buf, NULL), LAC_OK);
  laci_stepper_set_value(run, value, buf);
}

static void resnet20_of_cifar10_is_pytorchs(void **state) {
  (void)state;
  lac_error err = {0};
  fixture from;
  laci_onnx *file = NULL;
  laci_graph *model = NULL;
  laci_stepper *run = NULL;
  if (laci_onnx_load(LAC_SOURCE_DIR "/../shared/models/resnet20_cifar10.onnx", &file, &model, &err))
    skip();
  assert_int_equal(laci_onnx_materialise(file, &err), LAC_OK);
  assert_true(fixture_open(&from, LAC_SOURCE_DIR "/tests/fixtures/gradient/resnet20.txt"));
  assert_int_equal(laci_graph_infer(model, NULL, 0, &err), LAC_OK);
  laci_training_graph *to = make_training(model, 16);
  assert_int_equal(to->n_params, 59);
  assert_int_equal(to->n_stats, 38);
  assert_int_equal(walk_open(to->graph, NULL, &run, &err), LAC_OK);
  bool there = set_cifar(run, to);
  for (int at = 0; at < to->n_params; at++)
    set_stored(run, model, to->params[at].stored, to->params[at].input);
  for (int at = 0; at < to->n_stats; at++)
    set_stored(run, model, to->stats[at].stored, to->stats[at].input);
  if (there && walk_all(run, to->graph, &err)) fail_msg("%s", err.text);
  if (there) {
    expect(run, to->loss, &from, "", "loss", 1e-7);
    for (int at = 0; at < to->n_params; at++)
      expect_sums(run, to->params[at].gradient, &from, "g/", to->params[at].name);
    for (int at = 0; at < to->n_stats; at++)
      expect_sums(run, to->stats[at].update, &from, "u/", to->stats[at].name);
  }
  laci_stepper_destroy(run);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
  laci_onnx_destroy(file);
  laci_free(from.text);
  if (!there) skip();
}

/* ---- What is taken */

static const laci_training_param *find_param(const laci_training_graph *to, const char *name) {
  for (int at = 0; at < to->n_params; at++)
    if (strcmp(to->params[at].name, name) == 0) return &to->params[at];
  return NULL;
}

static void every_tensor_gets_its_sort(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  const char *net =
      "input x 1x3x4x4\nstored mean 3x1x1\nstored w 4x3x3x3\nstored b 4\nstored scale 4x1x1\n"
      "stored number 1\nstored s 4\nstored o 4\nstored m 4\nstored v 4 positive\nstored f 5x64\n"
      "stored unused 5\nstored slope 4x1x1\nx0 = Sub(x, mean)\n"
      "a = Conv(x0, w, b) pads=1,1,1,1\nc = Mul(a, scale)\nd = Mul(number, c)\n"
      "e = BatchNormalization(d, s, o, m, v)\ng = PRelu(e, slope)\nh = Flatten(g)\n"
      "y = Gemm(h, f) transB=1\nz = Add(y, unused)\noutput y\noutput z\n";
  if (net_read(net, &model, &err)) fail_msg("%s", err.text);
  laci_training_graph *to = make_training(model, 4);
  assert_int_equal(find_param(to, "w")->kind, LACI_PARAM_WEIGHT);
  assert_int_equal(find_param(to, "f")->kind, LACI_PARAM_WEIGHT);
  assert_int_equal(find_param(to, "b")->kind, LACI_PARAM_BIAS);
  assert_int_equal(find_param(to, "scale")->kind, LACI_PARAM_BIAS);
  assert_int_equal(find_param(to, "slope")->kind, LACI_PARAM_BIAS);
  assert_int_equal(find_param(to, "s")->kind, LACI_PARAM_NORM);
  assert_int_equal(find_param(to, "o")->kind, LACI_PARAM_NORM);
  assert_int_equal(to->n_params, 7); /* not mean: it prepares; not number; unused leads nowhere */
  assert_int_equal(to->n_stats, 2);
  assert_true(laci_graph_find_value(to->graph, "z") < 0);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

static void a_batch_that_the_file_fixes_is_named(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  laci_training_graph *to;
  const char *net =
      "input x 2x12\nstored w 12x5\nstored mixer 2x2\np = MatMul(x, w)\n"
      "y = MatMul(mixer, p)\noutput y\n";
  laci_training_options options = {.batch = 4};
  if (net_read(net, &model, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_training_graph_create(model, &options, &to, &err), LAC_BAD_SHAPE);
  if (!strstr(err.text, "input 'x' fixes a batch of 2, and the network works in no batch of 4")) {
    fail_msg("%s", err.text);
  }
  assert_int_equal(laci_training_graph_create(model, &options, &to, NULL), LAC_BAD_SHAPE);
  options.batch = 2;
  assert_int_equal(laci_training_graph_create(model, &options, &to, &err), LAC_OK);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
  /* it is not the cause where the network cannot be trained in that batch either */
  net =
      "input x 2x12\nstored w 12x12\nstored r 3 i64 = -1 4 3\np = MatMul(x, w)\n"
      "y = Reshape(p, r)\noutput y\n";
  options.batch = 4;
  if (net_read(net, &model, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_training_graph_create(model, &options, &to, &err), LAC_BAD_SHAPE);
  if (strstr(err.text, "fixes a batch") || !strstr(err.text, "wanted [4, classes]")) {
    fail_msg("%s", err.text);
  }
  laci_graph_destroy(model);
}

static void weights_that_are_left_as_they_are_are_known(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  laci_untrained left;
  const char *net =
      "input x 1x3x4x4\nstored first 1x3x4x4\nstored w 4x3x3x3\nstored limit 4x1x1\n"
      "stored f 5x64\nstored aw 4x4x1x1\nstored ab 4\nstored one 1\nstored bw 4x4x1x1\n"
      "p = MatMul(x, first)\na = Conv(p, w) pads=1,1,1,1\nc = Greater(a, limit)\n"
      "z = Mul(a, one)\nd = Where(c, a, z)\nh = Flatten(d)\ny = Gemm(h, f) transB=1\n"
      "u = Conv(d, aw, ab)\nv = Mul(u, one)\nt = Conv(u, bw)\n"
      "output y\noutput v\noutput t\noutput d\n";
  if (net_read(net, &model, &err)) fail_msg("%s", err.text);
  laci_training_graph *to = make_training(model, 4);
  for (int at = 0; at < model->n_outputs; at++) {
    static const int wanted[] = {0, 2, 3, 0};
    assert_int_equal(laci_untrained_find_before_output(model, to, at, &left, &err), LAC_OK);
    assert_int_equal(left.n, wanted[at]);
    if (left.n) assert_string_equal(left.first, "aw");
  }
  left = laci_untrained_find_in_products(model, to);
  assert_int_equal(left.n, 1);
  assert_string_equal(left.first, "first");
  left = laci_untrained_find_without_gradient(to);
  assert_int_equal(left.n, 1);
  assert_string_equal(left.first, "limit");
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
  /* where nothing is left, nothing is found */
  if (net_read(bottleneck, &model, &err)) fail_msg("%s", err.text);
  to = make_training(model, 2);
  assert_int_equal(laci_untrained_find_in_products(model, to).n, 0);
  assert_int_equal(laci_untrained_find_without_gradient(to).n, 0);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

/* The values of a batch normalization by the batch and of a changed Reshape are new ones: the
 * model's own may have just those names. */
static void names_of_the_models_own_values_stay_theirs(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  const char *net =
      "input x 1x3x4x4\nstored w 4x3x3x3\nstored s 4\nstored o 4\nstored m 4\n"
      "stored v 4 positive\nstored f 5x64\nstored r 2 i64 = 1 -1\na = Conv(x, w) pads=1,1,1,1\n"
      "e = BatchNormalization(a, s, o, m, v) name=\"bn\"\nbn/batch_mean = Relu(e)\n"
      "bn/running_var = Sigmoid(bn/batch_mean)\nh = Reshape(bn/running_var, r) name=\"re\"\n"
      "re/shape = Relu(h)\nlabels = Relu(re/shape)\ny = Gemm(labels, f) transB=1\noutput y\n";
  if (net_read(net, &model, &err)) fail_msg("%s", err.text);
  laci_training_graph *to = make_training(model, 4);
  const laci_graph *graph = to->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    for (int at = 0; at < graph->nodes[n].n_outputs; at++) {
      int value = graph->nodes[n].outputs[at];
      if (value >= 0) assert_int_equal(graph->values[value].producer, n);
    }
  }
  int mean = laci_graph_find_value(graph, "bn/batch_mean");
  assert_string_equal(graph->nodes[graph->values[mean].producer].type, "Relu");
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

static void statistics_can_be_kept(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  laci_training_graph *to;
  laci_training_options options = {.batch = 2, .keep_statistics = true};
  assert_int_equal(net_read(bottleneck, &model, &err), LAC_OK);
  assert_int_equal(laci_training_graph_create(model, &options, &to, &err), LAC_OK);
  assert_int_equal(to->n_stats, 0);
  assert_int_equal(to->n_params, 14);
  assert_int_equal(count_type(to->graph, "BatchNormalization"), 0);
  for (int n = 0; n < to->graph->n_nodes; n++) {
    const laci_node *node = &to->graph->nodes[n];
    if (strcmp(node->type, "BatchNormTrain") == 0) assert_int_equal(node->n_outputs, 3);
    if (strncmp(node->type, "BatchNormTrain", 14) == 0)
      assert_int_equal(laci_node_int(node, "fixed", 0), 1);
  }
  laci_training_graph_destroy(to);
  options.loss = LACI_LOSS_NONE; /* what has no gradient is as in inference, and folds */
  assert_int_equal(laci_training_graph_create(model, &options, &to, &err), LAC_OK);
  assert_int_equal(count_type(to->graph, "BatchNormTrain"), 0);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

static void shared_statistics_run_on_from_layer_to_layer(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  const char *net =
      "input x 1x2\nstored s 2\nstored b 2\nstored m 2\nstored v 2 positive\n"
      "stored w 2x2\na = MatMul(x, w)\nc = BatchNormalization(a, s, b, m, v)\n"
      "y = BatchNormalization(c, s, b, m, v)\noutput y\n";
  assert_int_equal(net_read(net, &model, &err), LAC_OK);
  laci_training_graph *to = make_training(model, 3);
  assert_int_equal(to->n_stats, 2);
  const laci_node *last = &to->graph->nodes[to->graph->values[to->stats[0].update].producer];
  const laci_node *first = &to->graph->nodes[to->graph->values[last->inputs[3]].producer];
  assert_string_equal(last->type, "BatchNormTrain");
  assert_string_equal(first->type, "BatchNormTrain");
  assert_int_equal(first->inputs[3], to->stats[0].input);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

static void a_batch_written_into_a_reshape_becomes_ours(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  const char *net =
      "input x 1x2x3\nstored p 1x6\nstored w 6x4\nstored s 2 i64 = 1 -1\n"
      "stored t 2 i64 = 1 6\na = Reshape(x, s)\nq = Reshape(p, t)\n"
      "c = MatMul(a, w)\nd = MatMul(q, w)\ny = Add(c, d)\noutput y\n";
  assert_int_equal(net_read(net, &model, &err), LAC_OK);
  laci_training_graph *to = make_training(model, 5);
  assert_int_equal(to->n_params, 2); /* p's own Reshape stays as it was */
  assert_int_equal(to->n_classes, 4);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

static void a_softmax_before_a_reshape_is_left_out(void **state) {
  (void)state;
  static const char *const ends[] = {
      "z = Softmax(y)\noutput z\n", "s = Softmax(y)\nz = Flatten(s)\noutput z\n",
      "s = LogSoftmax(y)\nt = Identity(s)\nu = Flatten(t)\nz = Identity(u)\noutput z\n",
      "s = Identity(y)\nz = Flatten(s)\noutput z\n", /* none: nothing is left out */
  };
  for (int at = 0; at < 4; at++) {
    char net[512];
    lac_error err = {0};
    laci_graph *model;
    (void)snprintf(net, sizeof net, "input x 2x4 f64\nstored w 4x3 f64\ny = MatMul(x, w)\n%s",
                   ends[at]);
    if (net_read(net, &model, &err)) fail_msg("%s", err.text);
    laci_training_graph *made = make_training(model, 2);
    const laci_graph *graph = made->graph;
    bool softmax = false, flatten = false;
    for (int n = 0; n < graph->n_nodes; n++) {
      softmax |= strstr(graph->nodes[n].type, "oftmax") && !graph->nodes[n].domain[0];
      flatten |= strcmp(graph->nodes[n].type, "Flatten") == 0;
    }
    assert_false(softmax);
    assert_int_equal(flatten, at == 3);
    laci_training_graph_destroy(made);
    laci_graph_destroy(model);
  }
}

static void tensors_shared_through_identity_are_found(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  const char *net =
      "input x 1x2\nstored s 2\nstored b 2\nstored m 2\nstored v 2 positive\n"
      "stored w 2x2\nmi = Identity(m)\nsi = Identity(s)\na = MatMul(x, w)\n"
      "c = BatchNormalization(a, s, b, m, v)\n"
      "y = BatchNormalization(c, si, b, mi, v)\noutput y\n";
  assert_int_equal(net_read(net, &model, &err), LAC_OK);
  laci_training_graph *to = make_training(model, 3);
  assert_int_equal(to->n_stats, 2);
  assert_int_equal(to->n_params, 3);
  assert_int_equal(find_param(to, "s")->kind, LACI_PARAM_NORM);
  assert_int_equal(count_type(to->graph, "BatchNormTrain"), 2);
  laci_training_graph_destroy(to);
  laci_graph_destroy(model);
}

static void what_cannot_be_trained_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *net, *text;
    lac_status status;
  } cases[] = {
      {"input x 1x4\nstored w 4x3\ny = Magic(x, w) name=\"trick\"\nshape y 1x3\noutput y\n",
       "trick: operator Magic cannot be trained", LAC_UNSUPPORTED},
      {"input x 1x4\nstored w 4x3\na = MatMul(x, w)\nstored i \"\" i64 = 1\n"
       "y = CumSum(a, i) name=\"sums\"\noutput y\n",
       "sums: operator CumSum has no gradient", LAC_UNSUPPORTED},
      {"input x 1x4\nstored w 4x3\na = MatMul(x, w)\nstored s 1 i64 = 0\ny = ReduceSum(a, s)\n"
       "output y\n",
       "wanted [2, classes]", LAC_BAD_SHAPE},
      {"input x 1x2\nstored w 2x2\nstored s 2\nstored zero 2\nstored v 2 positive\n"
       "a = MatMul(x, w)\ny = BatchNormalization(a, s, zero, zero, v)\noutput y\n",
       "'zero' is a running statistic", LAC_UNSUPPORTED},
      {"input x 1x4 f16\nstored w 4x3 f16\ny = MatMul(x, w)\noutput y\n", "nothing to train",
       LAC_UNSUPPORTED},
      {"input x 1x4\nstored w 4x3\nstored s \"\" = 0.1\nstored z \"\" i8 = 0\na = MatMul(x, w)\n"
       "q = QuantizeLinear(a, s, z)\ny = DequantizeLinear(q, s, z)\noutput y\n",
       "quantized networks", LAC_UNSUPPORTED},
      {"input x 1x4\ninput z 1x4\ny = Add(x, z)\noutput y\n", "2 inputs", LAC_UNSUPPORTED},
      {"input x -1x-2\nstored w 1\ny = Mul(x, w)\noutput y\n", "images of a known size",
       LAC_BAD_SHAPE},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    lac_error err = {0};
    laci_graph *model;
    laci_training_graph *to;
    laci_training_options options = {.batch = 2};
    assert_int_equal(net_read(cases[at].net, &model, &err), LAC_OK);
    lac_status st = laci_training_graph_create(model, &options, &to, &err);
    if (st != cases[at].status || !strstr(err.text, cases[at].text))
      fail_msg("'%s': %s: '%s'", cases[at].text, lac_status_text(st), err.text);
    assert_null(to);
    laci_graph_destroy(model);
  }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  laci_training_options options = {.batch = 2};
  assert_int_equal(net_read(bottleneck, &model, &err), LAC_OK);
  long at = 1;
  for (; at < 20000; at += 1 + at / 50) {
    laci_training_graph *to;
    laci_memory_fail_from(at);
    lac_status st = laci_training_graph_create(model, &options, &to, &err);
    laci_memory_fail_from(0);
    laci_training_graph_destroy(to);
    if (st == LAC_OK) break;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  assert_true(at < 20000);
  laci_graph_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_bottleneck_block_is_pytorchs),
      cmocka_unit_test(depthwise_and_squeeze_excite_are_pytorchs),
      cmocka_unit_test(attention_is_pytorchs),
      cmocka_unit_test(resnet20_of_cifar10_is_pytorchs),
      cmocka_unit_test(every_tensor_gets_its_sort),
      cmocka_unit_test(a_batch_that_the_file_fixes_is_named),
      cmocka_unit_test(weights_that_are_left_as_they_are_are_known),
      cmocka_unit_test(names_of_the_models_own_values_stay_theirs),
      cmocka_unit_test(statistics_can_be_kept),
      cmocka_unit_test(shared_statistics_run_on_from_layer_to_layer),
      cmocka_unit_test(a_batch_written_into_a_reshape_becomes_ours),
      cmocka_unit_test(a_softmax_before_a_reshape_is_left_out),
      cmocka_unit_test(tensors_shared_through_identity_are_found),
      cmocka_unit_test(what_cannot_be_trained_is_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
