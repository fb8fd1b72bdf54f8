/* SPDX-License-Identifier: Apache-2.0
 * Building a graph: names, definitions, order, readers, attributes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/names.h"
#include "graph/op.h"
#include "tensor/buf.h"

/** Adds NAME: out = TYPE(in). */
static lac_status add(laci_graph *graph, const char *name, const char *in, const char *out,
                      lac_error *err) {
  int input = laci_graph_intern_value(graph, in), output = laci_graph_intern_value(graph, out), id;
  laci_node node = {.name = name,
                    .type = "Relu",
                    .domain = "",
                    .version = 14,
                    .n_inputs = 1,
                    .n_outputs = 1,
                    .inputs = &input,
                    .outputs = &output};
  return laci_graph_add_node(graph, &node, &id, err);
}

static laci_graph *new_graph(void) {
  laci_graph *graph = NULL;
  laci_type type = {.dtype = LAC_DTYPE_F32, .shape = laci_shape_of(1, (int64_t[]){4})};
  assert_int_equal(laci_graph_create(&graph, NULL), LAC_OK);
  assert_int_equal(laci_graph_add_input(graph, "x", &type, NULL), LAC_OK);
  return graph;
}

static void nodes_are_sorted_and_keep_the_files_order(void **state) {
  (void)state;
  laci_graph *graph = new_graph();
  assert_int_equal(add(graph, "late", "b", "c", NULL), LAC_OK);
  assert_int_equal(add(graph, "first", "x", "a", NULL), LAC_OK);
  assert_int_equal(add(graph, "second", "a", "b", NULL), LAC_OK);
  assert_int_equal(add(graph, "side", "x", "d", NULL), LAC_OK);
  assert_int_equal(laci_graph_add_output(graph, "c", NULL), LAC_OK);
  assert_int_equal(laci_graph_finish(graph, NULL), LAC_OK);
  const char *order[] = {"first", "second", "late", "side"};
  for (int n = 0; n < 4; n++) assert_string_equal(graph->nodes[n].name, order[n]);
  assert_int_equal(graph->values[laci_graph_find_value(graph, "c")].producer, 2);
  const laci_value *x = &graph->values[laci_graph_find_value(graph, "x")];
  assert_int_equal(x->n_readers, 2);
  assert_int_equal(x->readers[0], 0);
  assert_int_equal(x->readers[1], 3);
  laci_graph_destroy(graph);
}

static void a_long_chain_backwards_is_sorted_without_recursion(void **state) {
  (void)state;
  enum { LENGTH = 20000 };
  char in[32], out[32];
  laci_graph *graph = new_graph();
  for (int n = LENGTH - 1; n >= 0; n--) {
    (void)snprintf(in, sizeof in, "v%d", n);
    (void)snprintf(out, sizeof out, "v%d", n + 1);
    assert_int_equal(add(graph, "", n ? in : "x", out, NULL), LAC_OK);
  }
  assert_int_equal(laci_graph_finish(graph, NULL), LAC_OK);
  for (int n = 0; n < LENGTH; n++) {
    (void)snprintf(out, sizeof out, "v%d", n + 1);
    assert_string_equal(graph->values[graph->nodes[n].outputs[0]].name, out);
  }
  laci_graph_destroy(graph);
}

static void a_cycle_is_refused_and_named(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = new_graph();
  assert_int_equal(add(graph, "one", "b", "a", &err), LAC_OK);
  assert_int_equal(add(graph, "two", "a", "b", &err), LAC_OK);
  assert_int_equal(laci_graph_finish(graph, &err), LAC_BAD_FILE);
  assert_string_equal(err.text, "a cycle: two (Relu) needs 'a', which needs that node");
  laci_graph_destroy(graph);
}

static void what_nothing_defines_is_refused_and_named(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = new_graph();
  assert_int_equal(add(graph, "one", "nowhere", "a", &err), LAC_OK);
  assert_int_equal(laci_graph_finish(graph, &err), LAC_BAD_FILE);
  assert_string_equal(err.text, "one (Relu): reads 'nowhere', which nothing defines");
  laci_graph_destroy(graph);
  graph = new_graph();
  assert_int_equal(laci_graph_add_output(graph, "y", &err), LAC_OK);
  assert_int_equal(laci_graph_finish(graph, &err), LAC_BAD_FILE);
  assert_string_equal(err.text, "graph output 'y' is defined by nothing");
  assert_int_equal(laci_graph_add_output(graph, "y", &err), LAC_BAD_FILE);
  laci_graph_destroy(graph);
}

static void a_second_definition_is_refused_and_leaves_the_graph_whole(void **state) {
  (void)state;
  lac_error err = {0};
  int id;
  laci_graph *graph = new_graph();
  laci_stored stored = {.name = "x", .dtype = LAC_DTYPE_F32, .shape = laci_shape_of(0, NULL)};
  assert_int_equal(laci_graph_add_stored(graph, &stored, &id, &err), LAC_BAD_FILE);
  assert_string_equal(err.text, "value 'x' is defined twice, first by a graph input");
  assert_int_equal(laci_graph_add_input(graph, "x", NULL, &err), LAC_BAD_FILE);
  assert_int_equal(add(graph, "one", "x", "a", &err), LAC_OK);
  assert_int_equal(add(graph, "two", "x", "a", &err), LAC_BAD_FILE);
  assert_string_equal(err.text, "two: value 'a' is defined twice, first by one");
  int x = laci_graph_intern_value(graph, "x");
  int outs[2] = {laci_graph_intern_value(graph, "b"), laci_graph_intern_value(graph, "b")};
  laci_node node = {.name = "both",
                    .type = "Split",
                    .n_inputs = 1,
                    .n_outputs = 2,
                    .inputs = &x,
                    .outputs = outs};
  assert_int_equal(laci_graph_add_node(graph, &node, &id, &err), LAC_BAD_FILE);
  assert_int_equal(graph->values[outs[0]].producer, -1);
  assert_int_equal(graph->n_nodes, 1);
  assert_int_equal(laci_graph_finish(graph, &err), LAC_OK);
  laci_graph_destroy(graph);
}

static void every_node_gets_a_name_of_its_own(void **state) {
  (void)state;
  laci_graph *graph = new_graph();
  assert_int_equal(add(graph, "conv", "x", "a", NULL), LAC_OK);
  assert_int_equal(add(graph, "conv", "x", "b", NULL), LAC_OK);
  assert_int_equal(add(graph, "", "x", "c", NULL), LAC_OK);
  assert_int_equal(add(graph, NULL, "x", "d", NULL), LAC_OK);
  assert_int_equal(add(graph, "Relu_4", "x", "e", NULL), LAC_OK);
  assert_int_equal(add(graph, "", "x", "f", NULL), LAC_OK);
  for (int a = 0; a < graph->n_nodes; a++) {
    for (int b = 0; b < a; b++) assert_string_not_equal(graph->nodes[a].name, graph->nodes[b].name);
  }
  assert_string_equal(graph->nodes[0].name, "conv");
  assert_string_equal(graph->nodes[2].name, "Relu_2");
  assert_string_equal(graph->nodes[4].name, "Relu_4");
  laci_graph_destroy(graph);
}

static void a_node_that_reads_twice_is_one_reader(void **state) {
  (void)state;
  int id;
  laci_graph *graph = new_graph();
  int in[3] = {laci_graph_intern_value(graph, "x"), -1, laci_graph_intern_value(graph, "x")},
      out = laci_graph_intern_value(graph, "y");
  laci_node node = {.name = "add",
                    .type = "Add",
                    .domain = "ai.onnx",
                    .n_inputs = 3,
                    .n_outputs = 1,
                    .inputs = in,
                    .outputs = &out,
                    .n_captures = 1,
                    .captures = in};
  assert_int_equal(laci_graph_add_node(graph, &node, &id, NULL), LAC_OK);
  assert_int_equal(laci_graph_finish(graph, NULL), LAC_OK);
  assert_int_equal(graph->values[in[0]].n_readers, 1);
  assert_ptr_equal(graph->nodes[0].op, laci_op_find("Add", ""));
  laci_graph_destroy(graph);
}

static void attributes_are_copied_deeply(void **state) {
  (void)state;
  int id, x;
  size_t n;
  char name[] = "axes", text[] = "same";
  int64_t ints[] = {1, 2};
  laci_buf *tensor = NULL;
  laci_shape scalar = laci_shape_of(0, NULL);
  laci_graph *graph = new_graph();
  assert_int_equal(laci_buf_create(LAC_DTYPE_F32, &scalar, &tensor, NULL), LAC_OK);
  laci_attr attrs[] = {{.name = name, .kind = LACI_ATTR_INTS, .n = 2, .ints = ints},
                       {.name = "none", .kind = LACI_ATTR_INTS},
                       {.name = "mode", .kind = LACI_ATTR_TEXT, .text = text},
                       {.name = "alpha", .kind = LACI_ATTR_FLOAT, .f = 0.5f},
                       {.name = "group", .kind = LACI_ATTR_INT, .i = 3},
                       {.name = "value", .kind = LACI_ATTR_TENSOR, .tensor = tensor}};
  x = laci_graph_intern_value(graph, "x");
  laci_node node = {.name = "n",
                    .type = "Thing",
                    .domain = "my",
                    .n_inputs = 1,
                    .inputs = &x,
                    .n_attrs = 6,
                    .attrs = attrs};
  assert_int_equal(laci_graph_add_node(graph, &node, &id, NULL), LAC_OK);
  name[0] = text[0] = 'X';
  ints[0] = 9;
  const laci_node *added = &graph->nodes[id];
  const int64_t *axes = laci_node_ints(added, "axes", &n);
  assert_int_equal(n, 2);
  assert_int_equal(axes[0], 1);
  assert_non_null(laci_node_ints(added, "none", &n));
  assert_int_equal(n, 0);
  assert_null(laci_node_ints(added, "group", &n));
  assert_string_equal(laci_node_text(added, "mode", ""), "same");
  assert_true(laci_node_float(added, "alpha", 0) == 0.5f);
  assert_int_equal(laci_node_int(added, "group", 1), 3);
  assert_int_equal(laci_node_int(added, "mode", 7), 7);
  assert_ptr_equal(laci_node_attr(added, "value")->tensor, tensor);
  assert_null(added->op);
  laci_graph_destroy(graph);
}

static void a_stored_tensor_is_copied_on_first_write(void **state) {
  (void)state;
  uint8_t bytes[4] = {1, 2, 3, 4};
  int id;
  laci_graph *graph = new_graph();
  laci_stored stored = {.name = "w",
                        .dtype = LAC_DTYPE_U8,
                        .shape = laci_shape_of(1, (int64_t[]){4}),
                        .bytes = bytes,
                        .size_bytes = 4};
  assert_int_equal(laci_graph_add_stored(graph, &stored, &id, NULL), LAC_OK);
  uint8_t *mut = laci_stored_writable_bytes(&graph->stored[id]);
  mut[0] = 9;
  assert_int_equal(bytes[0], 1);
  assert_ptr_equal(laci_stored_writable_bytes(&graph->stored[id]), mut);
  assert_int_equal(graph->stored[id].bytes[0], 9);
  assert_int_equal(graph->values[graph->stored[id].value].type.dtype, LAC_DTYPE_U8);
  laci_graph_destroy(graph);
}

static void names_are_found_among_many(void **state) {
  (void)state;
  enum { MANY = 5000 };
  static char names[MANY][24];
  laci_name_table table = {0};
  for (int at = 0; at < MANY; at++) {
    (void)snprintf(names[at], sizeof names[at], "/layer/%d", at);
    assert_int_equal(laci_name_find(&table, names[at]), -1);
    assert_true(laci_name_add(&table, names[at], at));
  }
  for (int at = 0; at < MANY; at++) assert_int_equal(laci_name_find(&table, names[at]), at);
  laci_name_table_clear(&table);
}

/** Everything that building a small graph does; the status of the first failure. */
static lac_status build_all(lac_error *err) {
  laci_graph *graph = NULL;
  laci_type type = {.dtype = LAC_DTYPE_F32, .shape = laci_shape_of(1, (int64_t[]){4})};
  float bytes[1] = {1};
  int id;
  laci_stored stored = {.name = "w",
                        .dtype = LAC_DTYPE_F32,
                        .shape = laci_shape_of(0, NULL),
                        .bytes = (uint8_t *)bytes,
                        .size_bytes = 4};
  lac_status st = laci_graph_create(&graph, err);
  if (!st) st = laci_graph_add_input(graph, "x", &type, err);
  if (!st) st = laci_graph_add_stored(graph, &stored, &id, err);
  for (int n = 0; n < 40 && !st; n++) {
    char in[16], out[16];
    (void)snprintf(in, sizeof in, n ? "v%d" : "x", n);
    (void)snprintf(out, sizeof out, "v%d", n + 1);
    int ids[2] = {laci_graph_intern_value(graph, in), laci_graph_intern_value(graph, out)};
    if (ids[0] < 0 || ids[1] < 0) st = laci_fail_memory(err, "a value");
    else st = add(graph, "", in, out, err);
  }
  if (!st) st = laci_graph_add_output(graph, "v40", err);
  if (!st) st = laci_graph_finish(graph, err);
  laci_graph_destroy(graph);
  return st;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (long at = 1; at < 1000; at++) {
    lac_error err = {0};
    laci_memory_fail_from(at);
    lac_status st = build_all(&err);
    laci_memory_fail_from(0);
    if (st == LAC_OK) return;
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_int_equal(err.status, LAC_NO_MEMORY);
  }
  fail_msg("still failing after a thousand allocations");
}

static void operators_are_found_by_name_and_domain(void **state) {
  (void)state;
  int n;
  const laci_op *const *all = laci_op_all(&n);
  assert_true(n > 30);
  for (int at = 0; at < n; at++) {
    assert_ptr_equal(laci_op_find(all[at]->name, all[at]->domain), all[at]);
    assert_non_null(all[at]->infer);
    assert_non_null(all[at]->couple);
    assert_int_not_equal(all[at]->role, LACI_ROLE_UNKNOWN);
    if (all[at]->is_fold) assert_non_null(all[at]->eval);
  }
  assert_null(laci_op_find("Conv", "my.domain"));
  assert_null(laci_op_find("NoSuchOperator", NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_are_sorted_and_keep_the_files_order),
      cmocka_unit_test(a_long_chain_backwards_is_sorted_without_recursion),
      cmocka_unit_test(a_cycle_is_refused_and_named),
      cmocka_unit_test(what_nothing_defines_is_refused_and_named),
      cmocka_unit_test(a_second_definition_is_refused_and_leaves_the_graph_whole),
      cmocka_unit_test(every_node_gets_a_name_of_its_own),
      cmocka_unit_test(a_node_that_reads_twice_is_one_reader),
      cmocka_unit_test(attributes_are_copied_deeply),
      cmocka_unit_test(a_stored_tensor_is_copied_on_first_write),
      cmocka_unit_test(names_are_found_among_many),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(operators_are_found_by_name_and_domain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
