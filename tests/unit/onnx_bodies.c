/* SPDX-License-Identifier: Apache-2.0
 * Bodies of If, Loop and Scan that are opened: their nodes and stored tensors in the graph, what
 * they are called, which bodies stay closed and why, and writing changed tensors back. */
#include "onnx_build.h"

#include "graph/op.h"

enum { GRAPH = 5, TENSOR = 4, FLOATS = 6, INT = 2 };

static const laci_body *body_of(const laci_graph *graph, const char *node) {
  const laci_node *found = find_node(graph, node);
  assert_true(found->body > 0 && found->body <= graph->n_bodies);
  return &graph->bodies[found->body - 1];
}

static Onnx__AttributeProto *attr_graph(build *b, Onnx__NodeProto *node, const char *name,
                                        Onnx__GraphProto *graph) {
  Onnx__AttributeProto *attr = build_attr(b, node, name, GRAPH);
  attr->g = graph;
  return attr;
}

static void add_floats(build *b, Onnx__GraphProto *graph, const char *name, float number) {
  Onnx__AttributeProto *a =
      build_attr(b, build_node(b, graph, "Constant", "", name), "value_floats", FLOATS);
  PUSH(b, a, floats, number);
}

static void result(build *b, Onnx__GraphProto *graph, const char *name) {
  PUSH(b, graph, output, build_info(b, name, LAC_DTYPE_F32, NULL));
}

/** If(cond){ r = x + w } else { s = x * w * k }: w is a tensor of each, k a Constant. */
static Onnx__NodeProto *small_if(build *b, Onnx__GraphProto *graph, const char *condition,
                                 const char *output) {
  Onnx__GraphProto *then = build_graph(b), *other = build_graph(b);
  PUSH(b, then, initializer, build_raw(b, "w", LAC_DTYPE_F32, 1, "abcd", 4));
  build_node(b, then, "Add", "x w", "r");
  result(b, then, "r");
  PUSH(b, other, initializer, build_raw(b, "w", LAC_DTYPE_F32, 1, "efgh", 4));
  add_floats(b, other, "k", 3);
  build_node(b, other, "Mul", "x w", "r"); /* a name of the other body: another value */
  build_node(b, other, "Mul", "r k", "s");
  result(b, other, "s");
  Onnx__NodeProto *node = build_node(b, graph, "If", condition, output);
  attr_graph(b, node, "then_branch", then);
  attr_graph(b, node, "else_branch", other);
  return node;
}

static void start(build *b) {
  build_init(b);
  PUSH(b, b->graph, input, build_info(b, "cond", LAC_DTYPE_BOOL, ""));
  build_input(b, "x", "1");
}

static void branches_come_before_their_if(void **state) {
  (void)state;
  build b;
  start(&b);
  small_if(&b, b.graph, "cond", "y");
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->n_bodies, 2);
  assert_int_equal(l.graph->n_stored, 3);
  const laci_node *end = find_node(l.graph, "y"); /* which has no name of its own */
  assert_int_equal(laci_node_control_flow_role(end), LACI_CONTROL_CHOICE);
  assert_int_equal(end->n_inputs, 3);
  assert_string_equal(value_name(l.graph, end->inputs[1]), "y/then_branch/r");
  assert_string_equal(value_name(l.graph, end->inputs[2]), "y/else_branch/s");
  assert_int_equal(body_of(l.graph, "y/then_branch/Add")->branch, 1);
  assert_int_equal(body_of(l.graph, "y/else_branch/Mul")->branch, 0);
  assert_ptr_equal(&l.graph->nodes[body_of(l.graph, "y/then_branch/Add")->end], end);
  assert_memory_equal(find_stored(l.graph, "y/then_branch/w")->bytes, "abcd", 4);
  assert_memory_equal(find_stored(l.graph, "y/else_branch/w")->bytes, "efgh", 4);
  loaded_clear(&l);
  build_clear(&b);
}

/** One tensor of a body changes, and nothing else of the file does. */
static void only_changed_tensors_of_bodies_are_written(void **state) {
  (void)state;
  build b;
  start(&b);
  small_if(&b, b.graph, "cond", "y");
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  float nine = 9;
  memcpy(laci_stored_writable_bytes(find_stored(l.graph, "y/else_branch/k")), &nine, sizeof nine);
  memcpy(laci_stored_writable_bytes(find_stored(l.graph, "y/then_branch/w")), "ABCD", 4);
  folder dir;
  folder_make(&dir);
  const char *out = in_folder(&dir, "o.onnx");
  assert_int_equal(laci_onnx_save(l.file, l.graph, out, false, &l.err), LAC_OK);
  size_t n_old, n_new, differ = 0;
  uint8_t *old_bytes = build_bytes(&b, &n_old), *bytes = read_bytes(out, &n_new);
  assert_int_equal(n_old, n_new);
  for (size_t at = 0; at < n_new; at++) differ += old_bytes[at] != bytes[at];
  assert_true(differ > 4 && differ <= 4 + sizeof nine);
  loaded again = {0};
  again.status = laci_onnx_load(out, &again.file, &again.graph, &again.err);
  assert_loaded(again);
  assert_memory_equal(find_stored(again.graph, "y/else_branch/k")->bytes, &nine, sizeof nine);
  assert_memory_equal(find_stored(again.graph, "y/then_branch/w")->bytes, "ABCD", 4);
  assert_memory_equal(find_stored(again.graph, "y/else_branch/w")->bytes, "efgh", 4);
  laci_free(bytes);
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
  build_clear(&b);
}

/** h, t = Loop(n, cond, h0){ t = h + x; u = t * w }: u is carried, t a slice; w comes late. */
static Onnx__NodeProto *small_loop(build *b, const char *inputs) {
  Onnx__GraphProto *body = build_graph(b);
  PUSH(b, body, input, build_info(b, "i", LAC_DTYPE_I64, ""));
  PUSH(b, body, input, build_info(b, "go", LAC_DTYPE_BOOL, ""));
  PUSH(b, body, input, build_info(b, "h", LAC_DTYPE_F32, "1"));
  PUSH(b, body, initializer, build_raw(b, "w", LAC_DTYPE_F32, 1, "abcd", 4));
  build_node(b, body, "Mul", "t w", "u");
  build_node(b, body, "Add", "h x", "t"); /* its reader comes before it */
  PUSH(b, body, output, build_info(b, "go", LAC_DTYPE_BOOL, ""));
  result(b, body, "u");
  result(b, body, "t");
  Onnx__NodeProto *node = build_node(b, b->graph, "Loop", inputs, "y ys");
  node->name = (char *)"loop";
  attr_graph(b, node, "body", body);
  return node;
}

/** What a loop reads comes before it, and nothing but its body is inside. */
static void nodes_of_a_loop_are_adjacent(void **state) {
  (void)state;
  build b;
  start(&b);
  PUSH(&b, b.graph, input, build_info(&b, "n", LAC_DTYPE_I64, ""));
  build_node(&b, b.graph, "Abs", "ys", "z"); /* a reader before it */
  build_node(&b, b.graph, "Abs", "y", "q");
  small_loop(&b, "n - h0");
  build_node(&b, b.graph, "Neg", "x", "h0");
  build_output(&b, "z");
  build_output(&b, "q");
  loaded l = build_load(&b);
  assert_loaded(l);
  const laci_graph *g = l.graph;
  assert_int_equal(g->n_bodies, 1);
  const laci_body *body = &g->bodies[0];
  assert_string_equal(g->nodes[body->begin].name, "loop/body/begin");
  assert_string_equal(g->nodes[body->end].name, "loop");
  assert_int_equal(body->end - body->begin, 3);
  for (int n = 0; n < g->n_nodes; n++)
    assert_int_equal(g->nodes[n].body, n > body->begin && n < body->end);
  laci_end_ports ports = laci_node_loop_end_ports(&g->nodes[body->end]);
  assert_int_equal(ports.n_carried, 1);
  assert_int_equal(ports.n_slices, 1);
  const int *inputs = g->nodes[body->end].inputs;
  assert_string_equal(value_name(g, inputs[0]), "loop/body/go");
  assert_string_equal(value_name(g, inputs[ports.first]), "h0");
  assert_string_equal(value_name(g, inputs[ports.in]), "loop/body/h");
  assert_string_equal(value_name(g, inputs[ports.out]), "loop/body/u");
  assert_string_equal(value_name(g, inputs[ports.slices]), "loop/body/t");
  loaded_clear(&l);
  build_clear(&b);
}

/** A function's body with an If: all calls share its tensors. */
static void tensors_in_bodies_of_functions_are_shared(void **state) {
  (void)state;
  build b;
  start(&b);
  build_opset(&b, "local", 1);
  Onnx__FunctionProto *f = BUILD_NEW(&b, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->name = (char *)"F";
  f->domain = (char *)"local";
  build_names(&b, &f->input, &f->n_input, "c x");
  build_names(&b, &f->output, &f->n_output, "o");
  Onnx__GraphProto scratch = ONNX__GRAPH_PROTO__INIT;
  PUSH(&b, f, node, small_if(&b, &scratch, "c", "o"));
  PUSH(&b, b.model, functions, f);
  build_node(&b, b.graph, "F", "cond x", "t")->domain = (char *)"local";
  build_node(&b, b.graph, "F", "cond t", "y")->domain = (char *)"local";
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->n_bodies, 4);
  assert_int_equal(l.graph->n_stored, 3); /* of both calls */
  for (int s = 0; s < 3; s++) {
    assert_true(l.graph->stored[s].in_function && !l.graph->stored[s].overridable);
    assert_int_equal(l.graph->values[l.graph->stored[s].value].n_readers, 2);
  }
  loaded_clear(&l);
  build_clear(&b);
}

/* ---- Bodies that stay closed ---- */

static void hides_a_name(build *b) {
  Onnx__NodeProto *node = small_if(b, b->graph, "cond", "y");
  build_node(b, node->attribute[0]->g, "Abs", "r", "x");
}
static void one_body(build *b) { small_if(b, b->graph, "cond", "y")->n_attribute = 1; }
static void other_counts(build *b) {
  result(b, small_if(b, b->graph, "cond", "y")->attribute[0]->g, "x");
}
static void sparse_tensor(build *b) {
  Onnx__SparseTensorProto *s =
      BUILD_NEW(b, Onnx__SparseTensorProto, ONNX__SPARSE_TENSOR_PROTO__INIT);
  s->values = build_raw(b, "s", LAC_DTYPE_F32, 1, "abcd", 4);
  Onnx__GraphProto *body = small_if(b, b->graph, "cond", "y")->attribute[0]->g;
  PUSH(b, body, sparse_initializer, s);
}
static void carries_nothing_in(build *b) {
  Onnx__NodeProto *node = small_loop(b, "- - x");
  node->n_input = 2;
}
static void no_scanned_input(build *b) {
  Onnx__NodeProto *node = small_loop(b, "x x x");
  node->op_type = (char *)"Scan";
}

static void bodies_that_do_not_fit_stay_closed(void **state) {
  (void)state;
  static const struct {
    void (*make)(build *b);
    const char *words;
  } cases[] = {{hides_a_name, "a name from outside another meaning"},
               {one_body, "not two bodies"},
               {other_counts, "another number of results"},
               {sparse_tensor, "a sparse tensor"},
               {carries_nothing_in, "another number of inputs"},
               {no_scanned_input, "another number of inputs"}};
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    build b;
    start(&b);
    cases[at].make(&b);
    build_output(&b, "y");
    loaded l = build_load(&b);
    assert_loaded(l);
    assert_int_equal(l.graph->n_bodies, 0);
    const laci_node *node = &l.graph->nodes[0];
    assert_null(node->op);
    if (!node->fault || !strstr(node->fault, cases[at].words))
      fail_msg("case %zu: '%s', want '%s'", at, node->fault ? node->fault : "", cases[at].words);
    loaded_clear(&l);
    build_clear(&b);
  }
}

/* ---- Refusals ---- */

static void twice_in_a_body(build *b) {
  build_node(b, small_if(b, b->graph, "cond", "y")->attribute[0]->g, "Abs", "w", "r");
}
static void reads_nothing(build *b) {
  build_node(b, small_if(b, b->graph, "cond", "y")->attribute[0]->g, "Abs", "nowhere", "v");
}
static void a_cycle_through_a_body(build *b) {
  small_if(b, b->graph, "cond2", "y");
  build_node(b, b->graph, "Cast", "y", "cond2");
}
static void a_cycle_through_a_loop(build *b) {
  small_loop(b, "- cond h0");
  build_node(b, b->graph, "Neg", "y", "h0");
}

static void broken_bodies_are_refused(void **state) {
  (void)state;
  static const struct {
    void (*make)(build *b);
    const char *words;
  } cases[] = {{twice_in_a_body, "body 'y/then_branch/': 'r' is defined twice"},
               {reads_nothing, "reads 'nowhere', which nothing defines"},
               {a_cycle_through_a_body, "a cycle"},
               {a_cycle_through_a_loop, "a cycle"}};
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    build b;
    start(&b);
    cases[at].make(&b);
    build_output(&b, "y");
    loaded l = build_load(&b);
    assert_refused(l, LAC_BAD_FILE, cases[at].words);
    loaded_clear(&l);
    build_clear(&b);
  }
}

/** depth Ifs in each other; each level's then is the next. */
static void nest(build *b, int depth) {
  Onnx__GraphProto *inner = build_graph(b);
  build_node(b, inner, "Abs", "x", "v0");
  result(b, inner, "v0");
  for (int level = 1; level <= depth; level++) {
    Onnx__GraphProto *graph = level == depth ? b->graph : build_graph(b);
    Onnx__GraphProto *other = build_graph(b);
    char name[32];
    (void)snprintf(name, sizeof name, "o%d", level);
    build_node(b, other, "Neg", "x", name);
    result(b, other, name);
    (void)snprintf(name, sizeof name, "v%d", level);
    Onnx__NodeProto *node = build_node(b, graph, "If", "cond", level == depth ? "y" : name);
    attr_graph(b, node, "then_branch", inner);
    attr_graph(b, node, "else_branch", other);
    if (level < depth) result(b, graph, name);
    inner = graph;
  }
}

static void nested_bodies_are_opened_and_bounded(void **state) {
  (void)state;
  for (int depth = 1; depth <= 200; depth = depth < 60 ? depth + 59 : depth + 140) {
    build b;
    start(&b);
    nest(&b, depth);
    build_output(&b, "y");
    loaded l = build_load(&b);
    if (depth <= 60) {
      assert_loaded(l);
      assert_int_equal(l.graph->n_bodies, 2 * depth);
      assert_int_equal(l.graph->n_nodes, 2 * depth + 1);
    } else {
      assert_refused(l, LAC_BAD_FILE, "nested too deeply");
    }
    loaded_clear(&l);
    build_clear(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(branches_come_before_their_if),
      cmocka_unit_test(only_changed_tensors_of_bodies_are_written),
      cmocka_unit_test(nodes_of_a_loop_are_adjacent),
      cmocka_unit_test(tensors_in_bodies_of_functions_are_shared),
      cmocka_unit_test(bodies_that_do_not_fit_stay_closed),
      cmocka_unit_test(broken_bodies_are_refused),
      cmocka_unit_test(nested_bodies_are_opened_and_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
