/* SPDX-License-Identifier: Apache-2.0
 * Local functions: calls become nodes, constants are shared, attributes are handed in. */
#include "graph/graph.h"
#include "onnx_build.h"

static Onnx__FunctionProto *add_function(build *b, const char *name, const char *inputs,
                                         const char *outputs) {
  Onnx__FunctionProto *f = BUILD_NEW(b, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->name = build_text(b, name);
  f->domain = (char *)"local";
  build_names(b, &f->input, &f->n_input, inputs);
  build_names(b, &f->output, &f->n_output, outputs);
  Onnx__OperatorSetIdProto *set =
      BUILD_NEW(b, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  set->has_version = 1;
  set->version = 13; /* not the model's */
  PUSH(b, f, opset_import, set);
  PUSH(b, b->model, functions, f);
  return f;
}

static Onnx__NodeProto *add_to(build *b, Onnx__FunctionProto *f, const char *type,
                               const char *inputs, const char *outputs) {
  Onnx__NodeProto *node = build_node_of(b, type, inputs, outputs);
  PUSH(b, f, node, node);
  return node;
}

static Onnx__NodeProto *call(build *b, Onnx__GraphProto *graph, const char *function,
                             const char *name, const char *inputs, const char *outputs) {
  Onnx__NodeProto *node = build_node(b, graph, function, inputs, outputs);
  node->domain = (char *)"local";
  node->name = build_text(b, name);
  return node;
}

static void start(build *b) {
  build_init(b);
  build_input(b, "x", "4");
  build_output(b, "y");
}

static void refer(build *b, Onnx__NodeProto *node, const char *name, int type, const char *ref) {
  build_attr(b, node, name, type)->ref_attr_name = build_text(b, ref);
}

static void set_int(build *b, Onnx__NodeProto *node, const char *name, int64_t value) {
  Onnx__AttributeProto *a = build_attr(b, node, name, 2);
  a->has_i = 1;
  a->i = value;
}

static void calls_become_nodes_that_share_their_constants(void **state) {
  (void)state;
  build b;
  start(&b);
  Onnx__FunctionProto *f = add_function(&b, "Scale", "v", "r");
  static const float weight[1] = {3};
  Onnx__AttributeProto *a = build_attr(&b, add_to(&b, f, "Constant", "", "w"), "value", 4);
  a->t = build_raw(&b, "", LAC_DTYPE_F32, 1, weight, 4);
  add_to(&b, f, "Mul", "v w", "m")->name = (char *)"mul";
  add_to(&b, f, "Relu", "m", "r");
  call(&b, b.graph, "Scale", "first", "x", "t");
  call(&b, b.graph, "Scale", "second", "t", "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->n_nodes, 4);
  assert_int_equal(l.graph->n_stored, 1);
  const laci_stored *w = find_stored(l.graph, "Scale/w");
  assert_true(w->in_function && w->in_constant_node && !w->overridable);
  const laci_node *one = find_node(l.graph, "first/mul"), *two = find_node(l.graph, "second/mul");
  assert_int_equal(one->version, 13);
  assert_int_equal(one->inputs[1], w->value);
  assert_int_equal(two->inputs[1], w->value);
  assert_string_equal(value_name(l.graph, one->inputs[0]), "x");
  assert_string_equal(value_name(l.graph, two->inputs[0]), "t");
  assert_string_equal(value_name(l.graph, one->outputs[0]), "first/m");
  assert_int_equal(l.graph->values[w->value].n_readers, 2);
  loaded_clear(&l);
  build_clear(&b);
}

static void attributes_come_from_the_call_or_the_default(void **state) {
  (void)state;
  build b;
  start(&b);
  Onnx__FunctionProto *inner = add_function(&b, "Inner", "v", "r");
  PUSH(&b, inner, attribute, (char *)"axis");
  Onnx__NodeProto *softmax = add_to(&b, inner, "Softmax", "v", "s");
  refer(&b, softmax, "axis", 2, "axis");
  refer(&b, softmax, "absent", 2, "nobody_gives_this");
  refer(&b, add_to(&b, inner, "Constant", "", "c"), "value_int", 2, "axis");
  add_to(&b, inner, "Gather", "s c", "r");
  Onnx__FunctionProto *outer = add_function(&b, "Outer", "v", "r");
  Onnx__AttributeProto *standard = build_attr(&b, NULL, "which", 2);
  standard->has_i = 1;
  standard->i = 5;
  PUSH(&b, outer, attribute_proto, standard);
  Onnx__NodeProto *nested = add_to(&b, outer, "Inner", "v", "r");
  nested->domain = (char *)"local";
  nested->name = (char *)"in";
  refer(&b, nested, "axis", 2, "which");
  call(&b, b.graph, "Outer", "a", "x", "t");
  set_int(&b, call(&b, b.graph, "Outer", "b", "t", "y"), "which", -2);
  loaded l = build_load(&b);
  assert_loaded(l);
  const laci_node *one = find_node(l.graph, "a/in/Softmax");
  const laci_node *two = find_node(l.graph, "b/in/Softmax");
  assert_int_equal(laci_node_int(one, "axis", 0), 5);
  assert_int_equal(laci_node_int(two, "axis", 0), -2);
  assert_null(laci_node_attr(one, "absent"));
  int64_t number;
  memcpy(&number, find_stored(l.graph, "b/in/c")->bytes, sizeof number);
  assert_int_equal(number, -2);
  assert_true(find_stored(l.graph, "a/in/c")->in_function);
  loaded_clear(&l);
  build_clear(&b);
}

static void a_float_tensor_that_the_call_gives_is_frozen(void **state) {
  (void)state;
  build b;
  start(&b);
  Onnx__FunctionProto *f = add_function(&b, "F", "v", "r");
  refer(&b, add_to(&b, f, "Constant", "", "w"), "value", 4, "weight");
  add_to(&b, f, "Mul", "v w", "r");
  Onnx__AttributeProto *a = build_attr(&b, call(&b, b.graph, "F", "f", "x", "y"), "weight", 4);
  static const float weight[1] = {3};
  a->t = build_raw(&b, "", LAC_DTYPE_F32, 1, weight, 4);
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_true(find_stored(l.graph, "f/w")->overridable);
  laci_stored *stored = &l.graph->stored[0];
  assert_non_null(laci_stored_writable_bytes(stored));
  folder dir;
  folder_make(&dir);
  lac_error err = {0};
  const char *out = in_folder(&dir, "o.onnx");
  assert_int_equal(laci_onnx_save(l.file, l.graph, out, false, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "'f/w'"));
  assert_int_equal(count_files(&dir), 0);
  folder_remove(&dir);
  loaded_clear(&l);
  build_clear(&b);
}

/** What the graph changes in the open call would change in the closed one of a body, too. */
static void constants_of_a_function_that_a_body_calls_are_frozen(void **state) {
  (void)state;
  for (int hidden = 0; hidden < 2; hidden++) {
    build b;
    start(&b);
    build_input(&b, "cond", NULL);
    Onnx__FunctionProto *f = add_function(&b, "F", "v", "r");
    Onnx__AttributeProto *a = build_attr(&b, add_to(&b, f, "Constant", "", "w"), "value_floats", 6);
    PUSH(&b, a, floats, 2);
    add_to(&b, f, "Mul", "v w", "r");
    Onnx__FunctionProto *g = add_function(&b, "G", "v", "r"); /* reaches F in one more step */
    add_to(&b, g, "F", "v", "r")->domain = (char *)"local";
    call(&b, b.graph, "F", "open", "x", "t");
    Onnx__GraphProto *body = build_graph(&b);
    if (hidden) call(&b, body, "G", "closed", "x", "q");
    else build_node(&b, body, "Relu", "x", "q");
    PUSH(&b, body, output, build_info(&b, "q", 1, NULL));
    build_attr(&b, build_node(&b, b.graph, "If", "cond", "u"), "then_branch", 5)->g = body;
    build_node(&b, b.graph, "Add", "t u", "y");
    loaded l = build_load(&b);
    assert_loaded(l);
    assert_int_equal(find_stored(l.graph, "F/w")->overridable, hidden);
    loaded_clear(&l);
    build_clear(&b);
  }
}

static void outputs_without_a_node_are_copied(void **state) {
  (void)state;
  build b;
  start(&b);
  build_output(&b, "z");
  Onnx__FunctionProto *f = add_function(&b, "F", "v left_out", "v w unused");
  Onnx__AttributeProto *a = build_attr(&b, add_to(&b, f, "Constant", "", "w"), "value_floats", 6);
  PUSH(&b, a, floats, 2);
  add_to(&b, f, "Clip", "v left_out", "unused");
  call(&b, b.graph, "F", "f", "x", "y z");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->n_nodes, 3);
  assert_string_equal(find_node(l.graph, "f/v")->type, "Identity");
  assert_int_equal(find_node(l.graph, "f/w")->inputs[0], find_stored(l.graph, "F/w")->value);
  assert_int_equal(find_node(l.graph, "f/Clip")->inputs[1], -1);
  loaded_clear(&l);
  build_clear(&b);
}

static void names_made_up_never_meet_those_of_the_file(void **state) {
  (void)state;
  build b;
  start(&b);
  Onnx__FunctionProto *f = add_function(&b, "F", "v", "r");
  add_to(&b, f, "Abs", "v", "m");
  add_to(&b, f, "Relu", "m", "r");
  call(&b, b.graph, "F", "f", "x", "t");
  build_node(&b, b.graph, "Neg", "t", "f/m");
  build_node(&b, b.graph, "Neg", "f/m", "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  int value = laci_graph_find_value(l.graph, "f/m");
  assert_string_equal(l.graph->nodes[l.graph->values[value].producer].type, "Neg");
  loaded_clear(&l);
  build_clear(&b);
}

static void overload_and_domain_tell_functions_apart(void **state) {
  (void)state;
  build b;
  start(&b);
  add_to(&b, add_function(&b, "F", "v", "r"), "Abs", "v", "r");
  Onnx__FunctionProto *f = add_function(&b, "F", "v", "r");
  f->overload = (char *)"2";
  add_to(&b, f, "Neg", "v", "r");
  f = add_function(&b, "F", "v", "r");
  f->domain = (char *)"other";
  add_to(&b, f, "Exp", "v", "r");
  call(&b, b.graph, "F", "a", "x", "t");
  call(&b, b.graph, "F", "b", "t", "u")->overload = (char *)"2";
  call(&b, b.graph, "F", "c", "u", "w")->domain = (char *)"other";
  call(&b, b.graph, "F", "d", "w", "y")->domain = (char *)"nobody";
  loaded l = build_load(&b);
  assert_loaded(l);
  (void)find_node(l.graph, "a/Abs");
  (void)find_node(l.graph, "b/Neg");
  (void)find_node(l.graph, "c/Exp");
  assert_string_equal(find_node(l.graph, "d")->type, "F");
  loaded_clear(&l);
  build_clear(&b);
}

static void captures_of_a_body_in_a_function_are_the_calls_values(void **state) {
  (void)state;
  build b;
  start(&b);
  build_input(&b, "cond", NULL);
  Onnx__FunctionProto *f = add_function(&b, "F", "c v absent", "r");
  Onnx__GraphProto *body = build_graph(&b);
  build_node(&b, body, "Clip", "v absent m", "q");
  PUSH(&b, body, output, build_info(&b, "q", 1, NULL));
  add_to(&b, f, "Abs", "v", "m");
  build_attr(&b, add_to(&b, f, "If", "c", "r"), "then_branch", 5)->g = body;
  call(&b, b.graph, "F", "f", "cond x", "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  const laci_node *branch = find_node(l.graph, "f/If");
  assert_int_equal(branch->n_captures, 2);
  assert_string_equal(value_name(l.graph, branch->captures[0]), "x");
  assert_string_equal(value_name(l.graph, branch->captures[1]), "f/m");
  loaded_clear(&l);
  build_clear(&b);
}

static void a_changed_constant_goes_back_into_the_function(void **state) {
  (void)state;
  build b;
  start(&b);
  Onnx__FunctionProto *f = add_function(&b, "F", "v", "r");
  Onnx__AttributeProto *a = build_attr(&b, add_to(&b, f, "Constant", "", "w"), "value_floats", 6);
  PUSH(&b, a, floats, 2);
  add_to(&b, f, "Mul", "v w", "r");
  call(&b, b.graph, "F", "f", "x", "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  float seven = 7;
  memcpy(laci_stored_writable_bytes(&l.graph->stored[0]), &seven, sizeof seven);
  folder dir;
  folder_make(&dir);
  const char *out = in_folder(&dir, "o.onnx");
  assert_int_equal(laci_onnx_save(l.file, l.graph, out, false, &l.err), LAC_OK);
  loaded again = load_path(out);
  assert_loaded(again);
  assert_memory_equal(find_stored(again.graph, "F/w")->bytes, &seven, sizeof seven);
  assert_int_equal(again.file->model->n_functions, 1);
  assert_int_equal(again.file->model->graph->n_node, 1);
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
  build_clear(&b);
}

/* ---- Refusals ---- */

static void recursion(build *b) {
  Onnx__FunctionProto *f = add_function(b, "F", "v", "r"), *g = add_function(b, "G", "v", "r");
  add_to(b, f, "G", "v", "r")->domain = (char *)"local";
  add_to(b, g, "F", "v", "r")->domain = (char *)"local";
  call(b, b->graph, "F", "f", "x", "y");
}
static void undefined_inside(build *b) {
  add_to(b, add_function(b, "F", "v", "r"), "Add", "v x", "r");
  call(b, b->graph, "F", "f", "x", "y");
}
static void output_undefined(build *b) {
  add_to(b, add_function(b, "F", "v", "r"), "Abs", "v", "q");
  call(b, b->graph, "F", "f", "x", "y");
}
static void defined_twice(build *b) {
  Onnx__FunctionProto *f = add_function(b, "F", "v", "r");
  add_to(b, f, "Abs", "v", "r");
  add_to(b, f, "Neg", "v", "r");
  call(b, b->graph, "F", "f", "x", "y");
}
static void function_twice(build *b) {
  add_to(b, add_function(b, "F", "v", "r"), "Abs", "v", "r");
  add_to(b, add_function(b, "F", "v", "r"), "Abs", "v", "r");
  call(b, b->graph, "F", "f", "x", "y");
}
static void too_many_inputs(build *b) {
  add_to(b, add_function(b, "F", "v", "r"), "Abs", "v", "r");
  call(b, b->graph, "F", "f", "x x", "y");
}
static void attribute_missing(build *b) {
  Onnx__FunctionProto *f = add_function(b, "F", "v", "r");
  refer(b, add_to(b, f, "Constant", "", "w"), "value", 4, "weight");
  add_to(b, f, "Mul", "v w", "r");
  call(b, b->graph, "F", "f", "x", "y");
}
static void opset_inside(build *b) {
  Onnx__FunctionProto *f = add_function(b, "F", "v", "r");
  f->opset_import[0]->version = 99;
  add_to(b, f, "Abs", "v", "r");
  call(b, b->graph, "F", "f", "x", "y");
}
/** 40 functions, each of which calls the one before twice: a kilobyte that means 2^40 nodes. */
static void explosion(build *b) {
  static char names[40][16];
  add_to(b, add_function(b, "F0", "v", "r"), "Abs", "v", "r");
  for (int at = 1; at < 40; at++) {
    char callee[16];
    (void)snprintf(callee, sizeof callee, "F%d", at - 1);
    (void)snprintf(names[at], sizeof names[at], "F%d", at);
    Onnx__FunctionProto *f = add_function(b, names[at], "v", "r");
    char *type = laci_arena_text(&b->arena, callee);
    add_to(b, f, type, "v", "m")->domain = (char *)"local";
    add_to(b, f, type, "m", "r")->domain = (char *)"local";
  }
  call(b, b->graph, "F39", "f", "x", "y");
}
static void too_deep(build *b) {
  static char names[120][16];
  add_to(b, add_function(b, "F0", "v", "r"), "Abs", "v", "r");
  (void)snprintf(names[0], sizeof names[0], "F0");
  for (int at = 1; at < 120; at++) {
    (void)snprintf(names[at], sizeof names[at], "F%d", at);
    Onnx__FunctionProto *f = add_function(b, names[at], "v", "r");
    add_to(b, f, names[at - 1], "v", "r")->domain = (char *)"local";
  }
  call(b, b->graph, "F119", "f", "x", "y");
}

/* The function's set, in the place of the one that add_function gives. */
static Onnx__FunctionProto *softmax_of(build *b, int64_t version) {
  Onnx__FunctionProto *f = add_function(b, "F", "v", "r");
  f->opset_import[0]->version = version;
  add_to(b, f, "Softmax", "v", "r");
  return f;
}

static void another_softmax(build *b) {
  softmax_of(b, 11);
  call(b, b->graph, "F", "c", "x", "y");
}

static void another_softmax_deeper(build *b) {
  softmax_of(b, 12);
  Onnx__FunctionProto *outer = add_function(b, "G", "v", "r");
  add_to(b, outer, "F", "v", "r")->domain = (char *)"local";
  call(b, b->graph, "G", "c", "x", "y");
}

static void a_function_is_read_by_its_own_operator_set(void **state) {
  (void)state;
  build b;
  start(&b);
  Onnx__FunctionProto *f = add_function(&b, "F", "v", "r");
  f->opset_import[0]->version = 11;
  add_to(&b, f, "Relu", "v", "m")->name = (char *)"relu";
  add_to(&b, f, "Abs", "m", "r");
  call(&b, b.graph, "F", "c", "x", "t");
  build_node(&b, b.graph, "Softmax", "t", "y")->name = (char *)"last";
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(find_node(l.graph, "c/relu")->version, 11);
  assert_int_equal(find_node(l.graph, "last")->version, 17);
  loaded_clear(&l);
  build_clear(&b);
}

static void refuses_functions_that_mean_nothing(void **state) {
  (void)state;
  static const struct {
    void (*make)(build *b);
    lac_status status;
    const char *words;
  } cases[] = {
      {recursion, LAC_BAD_FILE, "function 'F' calls itself"},
      {undefined_inside, LAC_BAD_FILE, "function 'F': reads 'x'"},
      {output_undefined, LAC_BAD_FILE, "function 'F': reads 'r'"},
      {defined_twice, LAC_BAD_FILE, "'r' is defined twice"},
      {function_twice, LAC_BAD_FILE, "function 'F' of domain 'local' is defined twice"},
      {too_many_inputs, LAC_BAD_FILE, "2 inputs and 1 output, it has 1 and 1"},
      {attribute_missing, LAC_BAD_FILE, "gives no attribute 'weight'"},
      {opset_inside, LAC_UNSUPPORTED, "opset 99"},
      {another_softmax, LAC_UNSUPPORTED,
       "function 'F' of domain 'local' imports version 11 of ai.onnx and the model version 17, in "
       "which Softmax means something else"},
      {another_softmax_deeper, LAC_UNSUPPORTED,
       "function 'F' of domain 'local' imports version 12"},
      {explosion, LAC_UNSUPPORTED, "absurd size"},
      {too_deep, LAC_UNSUPPORTED, "nested more than 100 deep"},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    build b;
    start(&b);
    cases[at].make(&b);
    loaded l = build_load(&b);
    assert_refused(l, cases[at].status, cases[at].words);
    build_clear(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_become_nodes_that_share_their_constants),
      cmocka_unit_test(attributes_come_from_the_call_or_the_default),
      cmocka_unit_test(a_float_tensor_that_the_call_gives_is_frozen),
      cmocka_unit_test(constants_of_a_function_that_a_body_calls_are_frozen),
      cmocka_unit_test(outputs_without_a_node_are_copied),
      cmocka_unit_test(names_made_up_never_meet_those_of_the_file),
      cmocka_unit_test(overload_and_domain_tell_functions_apart),
      cmocka_unit_test(captures_of_a_body_in_a_function_are_the_calls_values),
      cmocka_unit_test(a_changed_constant_goes_back_into_the_function),
      cmocka_unit_test(a_function_is_read_by_its_own_operator_set),
      cmocka_unit_test(refuses_functions_that_mean_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
