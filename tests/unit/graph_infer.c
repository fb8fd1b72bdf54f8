/* SPDX-License-Identifier: Apache-2.0
 * Shape inference on chains as exporters write them: dynamic sizes as symbols, shape arithmetic,
 * fixed inputs, declared shapes that are wrong. In the nets a size of -90 or -99 is a symbol,
 * shared by all that write the same number. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

static laci_graph *read_net(const char *text) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static const laci_shape *shape_of(const laci_graph *graph, const char *name) {
  int value = laci_graph_find_value(graph, name);
  assert_true(value >= 0);
  return &graph->values[value].type.shape;
}

/** "[N, 4, ?]": N is symbol 90, M symbol 99, ? any other. */
static void assert_shape(const laci_graph *graph, const char *name, const char *want) {
  char text[128] = "[";
  const laci_shape *shape = shape_of(graph, name);
  for (int axis = 0; axis < shape->rank; axis++) {
    int64_t size = shape->dims[axis];
    if (axis) say(text, sizeof text, ", ");
    if (size >= 0) say(text, sizeof text, "%lld", (long long)size);
    else say(text, sizeof text, "%s", size == -90 ? "N" : size == -99 ? "M" : "?");
  }
  if (shape->rank < 0) say(text, sizeof text, "unknown");
  say(text, sizeof text, "]");
  if (strcmp(text, want) != 0) fail_msg("'%s' is %s, %s wanted", name, text, want);
}

typedef struct chain {
  const char *about, *net, *value, *want;
} chain;

static const chain chains[] = {
    {"a batch that flattens itself",
     "input x -90x512x2x2\nstored zero \"\" i64 = 0\nstored rest 1 i64 = -1\nstored a 1 i64 = 0\n"
     "s = Shape(x)\nn = Gather(s, zero)\nu = Unsqueeze(n, a)\nc = Concat(u, rest) axis=0\ny = "
     "Reshape(x, c)\noutput y",
     "y", "[N, 2048]"},
    {"-1 is the batch", "input x -90x4x2\nstored s 2 i64 = -1 8\ny = Reshape(x, s)\noutput y", "y",
     "[N, 8]"},
    {"-1 mixes batch and tokens",
     "input x -90x-99x8\nstored s 2 i64 = -1 8\ny = Reshape(x, s)\noutput y", "y", "[?, 8]"},
    {"heads are cut out",
     "input x -90x-99x8\nstored s 4 i64 = 0 0 2 -1\ny = Reshape(x, s)\noutput y", "y",
     "[N, M, 2, 4]"},
    {"channel shuffle with sizes from the network",
     "input x -90x6x4x4\nstored g 1 i64 = 2\nstored z 1 i64 = 0\nstored o 1 i64 = 1\nstored t 1 "
     "i64 = 2\nstored f 1 i64 = 4\n"
     "stored two \"\" i64 = 2\nstored q 1 i64 = -1\ns = Shape(x)\nn = Slice(s, z, o)\nc = Slice(s, "
     "o, t)\nh = Slice(s, t, f)\n"
     "p = Div(c, two)\nk = Concat(n, g, p, h) axis=0\ny = Reshape(x, k)\nw = Transpose(y) "
     "perm=0,2,1,3,4\n"
     "k2 = Concat(n, q, h) axis=0\nv = Reshape(w, k2)\noutput v",
     "v", "[N, 6, 4, 4]"},
    {"old upsampling: floor(size * 2.0)",
     "input x -90x3x7x5\nstored s2 1 i64 = 2\nstored s4 1 i64 = 4\nstored r 2 = 2.0 2.0\nstored z "
     "1 i64 = 0\n"
     "s = Shape(x)\nhw = Slice(s, s2, s4)\nf = Cast(hw) to=1\nm = Mul(f, r)\nd = Floor(m)\ni = "
     "Cast(d) to=7\n"
     "y = ConstantOfShape(i)\noutput y",
     "y", "[14, 10]"},
    {"a symbol survives * 1 and + 0",
     "input x -90x3\nstored one \"\" i64 = 1\nstored none \"\" i64 = 0\nstored a 1 i64 = 0\ns = "
     "Shape(x)\nn = Gather(s, none)\n"
     "m = Mul(n, one)\np = Add(none, m)\nq = Sub(p, none)\nr = Div(q, one)\nu = Unsqueeze(r, a)\ny "
     "= ConstantOfShape(u)\noutput y",
     "y", "[N]"},
    {"any other arithmetic gives an unknown size",
     "input x -90x3\nstored two \"\" i64 = 2\nstored none \"\" i64 = 0\nstored a 1 i64 = 0\ns = "
     "Shape(x)\nn = Gather(s, none)\n"
     "m = Mul(n, two)\nu = Unsqueeze(m, a)\ny = ConstantOfShape(u)\noutput y",
     "y", "[?]"},
    {"a size computed in floats keeps the rank",
     "input x -90x3\nstored two \"\" = 2.0\nstored none \"\" i64 = 0\nstored a 1 i64 = 0\nstored k "
     "1 i64 = 3\ns = Shape(x)\n"
     "n = Gather(s, none)\nf = Cast(n) to=1\nm = Mul(f, two)\ni = Cast(m) to=7\nu = Unsqueeze(i, "
     "a)\nc = Concat(u, k) axis=0\n"
     "y = ConstantOfShape(c)\noutput y",
     "y", "[?, 3]"},
    {"a product of known sizes",
     "input x -90x3x4x5\nstored b 1 i64 = 1\nstored e 1 i64 = 4\nstored r 1 i64 = -1\ns = "
     "Shape(x)\n"
     "t = Slice(s, b, e)\np = ReduceProd(t)\nc = Concat(r, p) axis=0\ny = Reshape(x, c)\noutput y",
     "y", "[N, 60]"},
    {"where a size is asked for",
     "input x -90x3\nstored none 2 i64 = 1 1\nstored w 2 i64 = -1 3\nstored m 2 i64 = -1 -1\n"
     "e = Equal(w, m)\nv = Where(e, none, w)\ny = Expand(x, v)\noutput y",
     "y", "[N, 3]"},
    {"a part of unknown extent",
     "input x -90x8\nstored z 1 i64 = 0\nstored e 1 i64 = 5\ny = Slice(x, z, e, z)\noutput y", "y",
     "[?, 8]"},
    {"a whole axis of unknown extent",
     "input x -90x8\nstored z 1 i64 = 0\nstored e 1 i64 = 9000000000000000000\ny = Slice(x, z, e, "
     "z)\n"
     "output y",
     "y", "[N, 8]"},
    {"a slice up to the axis' own size",
     "input x -90x8\nstored z 1 i64 = 0\nstored o 1 i64 = 1\ns = Shape(x)\nn = Slice(s, z, o)\n"
     "y = Slice(x, z, n, z)\noutput y",
     "y", "[N, 8]"},
    {"broadcasting a symbol with a known size",
     "input x -90x8\ninput z 4x8\ny = Add(x, z)\noutput y", "y", "[4, 8]"},
    {"broadcasting two symbols", "input x -90x8\ninput z -99x8\ny = Add(x, z)\noutput y", "y",
     "[?, 8]"},
    {"range over tokens",
     "input x -90x-99 i64\nstored o \"\" i64 = 1\nstored z \"\" i64 = 0\ns = Shape(x)\nt = "
     "Gather(s, o)\n"
     "y = Range(z, t, o)\noutput y",
     "y", "[M]"},
    {"concatenating unknown sizes",
     "input x -90x3\ninput z -99x3\ny = Concat(x, z) axis=0\noutput y", "y", "[?, 3]"},
    {"a size that the input brings", "input x 2x12\ninput s 3 i64\ny = Reshape(x, s)\noutput y",
     "y", "[?, ?, ?]"},
    {"a listed initializer may be replaced",
     "input x 2x12\nstored s 2 i64 listed = 3 8\ny = Reshape(x, s)\noutput y", "y", "[?, ?]"},
    {"an undeclared operator", "input x 2x12\nz = Mystery(x)\ny = Relu(z)\noutput y", "y",
     "[unknown]"},
    {"what cannot be counted", "input x -90x3\ny = NonZero(x)\noutput y", "y", "[2, ?]"},
    {"split keeps symbols of the other axes", "input x -90x6\ny, z = Split(x) axis=1\noutput z",
     "z", "[N, 3]"},
    {"split along a symbol", "input x -90x6\ny, z = Split(x) axis=0\noutput z", "z", "[?, 6]"},
    {"pad along a symbol", "input x -90x6\nstored p 4 i64 = 1 0 0 0\ny = Pad(x, p)\noutput y", "y",
     "[?, 6]"},
    {"tile of a size-1 axis by a symbol",
     "input x 1x6\ninput z -90x6\nstored o 1 i64 = 1\nstored n 1 i64 = 0\ns = Shape(z)\n"
     "b = Slice(s, n, o)\nr = Concat(b, o) axis=0\ny = Tile(x, r)\noutput y",
     "y", "[N, 6]"},
    {"flatten of a batch", "input x -90x6x2\ny = Flatten(x)\noutput y", "y", "[N, 12]"},
    {"flatten before the batch axis", "input x -90x6x2\ny = Flatten(x) axis=0\noutput y", "y",
     "[1, ?]"},
};

static void chains_are_followed_as_far_as_they_are_known(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof chains / sizeof *chains; at++) {
    laci_graph *graph = read_net(chains[at].net);
    print_message("  %s\n", chains[at].about);
    assert_shape(graph, chains[at].value, chains[at].want);
    laci_graph_destroy(graph);
  }
}

/* Symbol 1 is size -1, which a size that is not known must not be. */
static void a_size_that_is_not_known_is_no_symbol(void **state) {
  static const char *const nets[] = {
      "input x 1x4x-1x6\nstored s 4 = 1 1 2 2\ny = Resize(x, _, s)\noutput y\n",
      ("input x 1x4x-1x6\nstored s 4 i64 = 1 4 8 8\n"
       "y = Resize(x, _, _, s) keep_aspect_ratio_policy=\"not_larger\"\noutput y\n"),
      "input x 1x4x-1x6\ninput n -1 i64\ny = CenterCropPad(x, n)\noutput y\n",
      "input x 1x4x-1x6\ninput i 1x4x-1x6 i64\ny = MaxUnpool(x, i) kernel_shape=2,2\noutput y\n"};
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    laci_graph *graph;
    lac_error err = {0};
    if (net_read(nets[at], &graph, &err)) fail_msg("%s: %s", nets[at], err.text);
    const laci_shape *y = shape_of(graph, "y");
    if (y->rank != 4 || y->dims[2] == -1)
      fail_msg("%s: rank %d, %lld", nets[at], y->rank, (long long)y->dims[2]);
    laci_graph_destroy(graph);
  }
}

static void contents_hold_symbols(void **state) {
  (void)state;
  laci_graph *graph =
      read_net("input x -90x3x-99\nstored i 2 i64 = 2 1\ns = Shape(x)\ny = Gather(s, i)\noutput y");
  const laci_buf *known = graph->values[laci_graph_find_value(graph, "y")].known;
  assert_non_null(known);
  assert_int_equal(laci_size_from_element(known->i[0]), -99);
  assert_int_equal(known->i[1], 3);
  laci_graph_destroy(graph);
}

/** x [N, 3], and y [N, M] = Relu(x) that is declared otherwise. */
static laci_graph *declared(laci_shape shape) {
  laci_graph *graph = NULL;
  int id;
  laci_type in = {.dtype = LAC_DTYPE_F32, .shape = {.rank = 2, .dims = {-90, 3}}};
  assert_int_equal(laci_graph_create(&graph, NULL), LAC_OK);
  assert_int_equal(laci_graph_add_input(graph, "x", &in, NULL), LAC_OK);
  int x = laci_graph_intern_value(graph, "x"), y = laci_graph_intern_value(graph, "y"),
      z = laci_graph_intern_value(graph, "z");
  laci_node relu = {
      .name = "r", .type = "Relu", .n_inputs = 1, .n_outputs = 1, .inputs = &x, .outputs = &y};
  laci_node odd = {
      .name = "o", .type = "Mystery", .n_inputs = 1, .n_outputs = 1, .inputs = &x, .outputs = &z};
  assert_int_equal(laci_graph_add_node(graph, &relu, &id, NULL), LAC_OK);
  assert_int_equal(laci_graph_add_node(graph, &odd, &id, NULL), LAC_OK);
  graph->values[y].type.shape = shape;
  graph->values[z].type.shape = shape;
  assert_int_equal(laci_graph_finish(graph, NULL), LAC_OK);
  return graph;
}

static void what_inference_knows_wins_over_what_is_declared(void **state) {
  (void)state;
  laci_graph *graph = declared((laci_shape){.rank = 2, .dims = {7, 4}});
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  assert_shape(graph, "y", "[N, 3]");
  assert_shape(graph, "z", "[7, 4]"); /* nothing better is known */
  laci_graph_destroy(graph);
}

static void a_declared_size_fills_a_gap(void **state) {
  (void)state;
  laci_graph *graph = NULL;
  int id;
  laci_type in = {.dtype = LAC_DTYPE_F32, .shape = {.rank = 2, .dims = {-90, 3}}};
  assert_int_equal(laci_graph_create(&graph, NULL), LAC_OK);
  assert_int_equal(laci_graph_add_input(graph, "x", &in, NULL), LAC_OK);
  int x = laci_graph_intern_value(graph, "x"), y = laci_graph_intern_value(graph, "y");
  laci_node node = {
      .name = "nz", .type = "NonZero", .n_inputs = 1, .n_outputs = 1, .inputs = &x, .outputs = &y};
  assert_int_equal(laci_graph_add_node(graph, &node, &id, NULL), LAC_OK);
  graph->values[y].type.shape = (laci_shape){.rank = 2, .dims = {9, 10}};
  assert_int_equal(laci_graph_finish(graph, NULL), LAC_OK);
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  assert_shape(graph, "y", "[2, 10]");
  laci_graph_destroy(graph);
}

static void a_fixed_input_size_reaches_all_that_share_its_symbol(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = read_net("input x -90x3\ninput z -90x-99\ny = Concat(x, z) axis=1\noutput y");
  laci_input_shape fixed[] = {{.name = "z", .shape = {.rank = 2, .dims = {5, -1}}}};
  assert_int_equal(laci_graph_infer(graph, fixed, 1, &err), LAC_OK);
  assert_shape(graph, "x", "[5, 3]");
  assert_shape(graph, "z", "[5, M]");
  assert_shape(graph, "y", "[5, ?]");
  laci_input_shape other = {.name = "x", .shape = {.rank = 2, .dims = {6, 3}}};
  assert_int_equal(laci_graph_infer(graph, &other, 1, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "input 'x' has shape [5, 3], which cannot be [6, 3]");
  laci_graph_destroy(graph);
}

static void two_sizes_for_one_symbol_are_refused(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = read_net("input x -90x3\ninput z -90x4\ny = Concat(x, z) axis=1\noutput y");
  laci_input_shape fixed[] = {{.name = "x", .shape = {.rank = 2, .dims = {5, 3}}},
                              {.name = "z", .shape = {.rank = 2, .dims = {6, 4}}}};
  assert_int_equal(laci_graph_infer(graph, fixed, 2, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "input 'z': one size is asked to be 5 and 6");
  fixed[0].name = "nobody";
  assert_int_equal(laci_graph_infer(graph, fixed, 1, &err), LAC_NOT_FOUND);
  assert_string_equal(err.text, "the network has no input 'nobody'; it has 'x' [?, 3], 'z' [?, 4]");
  laci_graph_destroy(graph);
}

static void a_contradiction_names_the_node(void **state) {
  (void)state;
  const bad_case bad = {"sizes", "input x 2x3\ninput z 4x3\ny = Add(x, z) name=\"sum\"\noutput y",
                        LAC_BAD_SHAPE, "sum (Add): shapes [2, 3] and [4, 3] cannot be broadcast"};
  check_refused(&bad, 1);
}

/* An input without a shape is "-"; so is what Odd gives. */
static void readers_tell_what_shapes_are(void **state) {
  (void)state;
  static const struct {
    const char *net, *value, *want;
  } told[] = {
      {"input x -\nstored w 8x4x3x3\nr = Relu(x)\ny = Conv(r, w)\noutput y\n", "x", "[?, 4, ?, ?]"},
      {"input x -\nstored w 8x4x3x3\nr = Relu(x)\ny = Conv(r, w)\noutput y\n", "y", "[?, 8, ?, ?]"},
      {"input x 1x4\nstored w 9x2x5\nu = Odd(x) domain=\"my\"\ny = Conv(u, w) group=3\noutput y\n",
       "u", "[?, 6, ?]"},
      {"input x 1x4\nstored w 6x2x5\nu = Odd(x) domain=\"my\"\ny = ConvTranspose(u, w)\noutput y\n",
       "u", "[?, 6, ?]"},
      {"input x 1x4\nstored w 5x7\nu = Odd(x) domain=\"my\"\ny = Gemm(u, w)\noutput y\n", "u",
       "[?, 5]"},
      {"input x 1x4\nstored w 5x7\nu = Odd(x) domain=\"my\"\ny = Gemm(u, w) transA=1 transB=1\n"
       "output y\n",
       "u", "[7, ?]"},
      /* how many axes, a matrix on the right does not say */
      {"input x -\nstored w 5x7\ny = MatMul(x, w)\noutput y\n", "x", "[unknown rank]"},
      {"input x -1x-2x-3\nstored w 5x7\ny = MatMul(x, w)\noutput y\n", "x", "[?, ?, 5]"},
      {"input x -1x-2x-3\nstored s 9\ny = InstanceNormalization(x, s, s)\noutput y\n", "x",
       "[?, 9, ?]"},
      {"input x -1x-2x-3\nstored s 9\ny = LayerNormalization(x, s)\noutput y\n", "x", "[?, ?, 9]"},
      {"input x -1x-2x-3\nstored s 1\ny = LayerNormalization(x, s)\noutput y\n", "x", "[?, ?, ?]"},
      /* the node before the reader knows more once it has told */
      {"input x -\nstored w 8x4x3x3\nstored f 2 i64 = 1 3\ns = Shape(x)\ng = Gather(s, f)\n"
       "y = Conv(x, w)\nz = Reshape(w, g)\noutput y\noutput z\n",
       "z", "[4, ?]"},
  };
  for (size_t at = 0; at < sizeof told / sizeof *told; at++) {
    laci_graph *graph = read_net(told[at].net);
    char text[128];
    int value = laci_graph_find_value(graph, told[at].value);
    laci_shape shape = graph->values[value].type.shape;
    laci_shape_text(&shape, text, sizeof text);
    for (char *c = text; *c; c++) { /* whichever symbols */
      if (*c >= 'A' && *c <= 'Z') *c = '?';
    }
    if (strcmp(text, told[at].want) != 0)
      fail_msg("%s%s: got %s, want %s", told[at].net, told[at].value, text, told[at].want);
    laci_graph_destroy(graph);
  }
}

static void inference_again_gives_the_same(void **state) {
  (void)state;
  laci_graph *graph = read_net(chains[0].net);
  assert_int_equal(laci_graph_infer(graph, NULL, 0, NULL), LAC_OK);
  assert_shape(graph, "y", "[N, 2048]");
  laci_graph_destroy(graph);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (long at = 1; at < 1000; at++) {
    lac_error err = {0};
    laci_graph *graph = NULL;
    laci_memory_fail_from(at);
    lac_status st = net_read(
        "input x -90x6x2\nstored i 2 i64 = 0 1\ns = Shape(x)\ng = Gather(s, i)\ny = Reshape(x, "
        "g)\noutput y",
        &graph, &err);
    laci_memory_fail_from(0);
    laci_graph_destroy(graph);
    if (st == LAC_OK) return;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  fail_msg("still failing after a thousand allocations");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains_are_followed_as_far_as_they_are_known),
      cmocka_unit_test(a_size_that_is_not_known_is_no_symbol),
      cmocka_unit_test(contents_hold_symbols),
      cmocka_unit_test(what_inference_knows_wins_over_what_is_declared),
      cmocka_unit_test(a_declared_size_fills_a_gap),
      cmocka_unit_test(a_fixed_input_size_reaches_all_that_share_its_symbol),
      cmocka_unit_test(two_sizes_for_one_symbol_are_refused),
      cmocka_unit_test(a_contradiction_names_the_node),
      cmocka_unit_test(readers_tell_what_shapes_are),
      cmocka_unit_test(inference_again_gives_the_same),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
