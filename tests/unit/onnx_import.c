/* SPDX-License-Identifier: Apache-2.0
 * What the importer makes of a file: tensors of every kind of field, types, attributes, bodies; and
 * what it refuses. */
#include "graph/graph.h"
#include "graph/op.h"
#include "onnx_build.h"
#include "tensor/buf.h"

#include <math.h>

/** x[N 4] -> Relu -> y, and what the test adds. */
static void small_model(build *b) {
  build_init(b);
  build_input(b, "x", "N 4");
  build_node(b, b->graph, "Relu", "x", "y");
  build_output(b, "y");
}

static void reads_inputs_outputs_and_nodes(void **state) {
  (void)state;
  build b;
  build_init(&b);
  build_input(&b, "x", "N 4");
  build_input(&b, "z", "N 4");
  build_node(&b, b.graph, "Add", "x z", "s")->name = (char *)"sum";
  build_node(&b, b.graph, "Clip", "s - x", "y");
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->ir_version, 8);
  assert_int_equal(l.graph->n_inputs, 2);
  assert_int_equal(l.graph->n_outputs, 1);
  assert_int_equal(l.graph->n_nodes, 2);
  const laci_node *sum = find_node(l.graph, "sum");
  assert_string_equal(sum->type, "Add");
  assert_string_equal(sum->domain, "");
  assert_int_equal(sum->version, 17);
  const laci_node *clip = &l.graph->nodes[1];
  assert_int_equal(clip->n_inputs, 3);
  assert_int_equal(clip->inputs[1], -1);
  assert_string_equal(value_name(l.graph, clip->inputs[2]), "x");
  loaded_clear(&l);
  build_clear(&b);
}

static void sizes_of_one_name_are_one_symbol(void **state) {
  (void)state;
  build b;
  build_init(&b);
  build_input(&b, "x", "N 4 ? 0");
  build_input(&b, "z", "M N ? -1");
  build_input(&b, "deep", "1 1 1 1 1 1 1 1 1");
  build_node(&b, b.graph, "Relu", "x", "y");
  build_node(&b, b.graph, "Relu", "y", "u");
  PUSH(&b, b.graph, value_info, build_info(&b, "y", LAC_DTYPE_F16, "N 4 7 0"));
  build_output(&b, "u");
  loaded l = build_load(&b);
  assert_loaded(l);
  const laci_shape *x = &l.graph->values[laci_graph_find_value(l.graph, "x")].type.shape;
  const laci_shape *z = &l.graph->values[laci_graph_find_value(l.graph, "z")].type.shape;
  const laci_type *y = &l.graph->values[laci_graph_find_value(l.graph, "y")].type;
  assert_int_equal(x->rank, 4);
  assert_true(x->dims[0] < 0);
  assert_int_equal(x->dims[1], 4);
  assert_int_equal(x->dims[3], 0);
  assert_true(x->dims[2] < 0 && x->dims[2] != x->dims[0]);
  assert_int_equal(z->dims[1], x->dims[0]);
  assert_true(z->dims[2] != x->dims[2] && z->dims[0] != x->dims[0]);
  assert_true(z->dims[3] < 0);
  assert_int_equal(y->dtype, LAC_DTYPE_F16);
  assert_int_equal(y->shape.dims[0], x->dims[0]);
  assert_int_equal(y->shape.dims[2], 7);
  const laci_value *deep = &l.graph->values[laci_graph_find_value(l.graph, "deep")];
  assert_int_equal(deep->type.shape.rank, -1);
  assert_int_equal(deep->type.dtype, LAC_DTYPE_F32);
  loaded_clear(&l);
  build_clear(&b);
}

/** Each element type in its typed field: what the graph sees are packed little-endian bytes. */
static void reads_typed_fields_of_every_type(void **state) {
  (void)state;
  static const struct {
    int dtype, field; /* 4 float, 5 int32, 7 int64, 10 double, 11 uint64 */
    int32_t element;
    size_t size;
    uint8_t bytes[16];
  } cases[] = {
      {LAC_DTYPE_F32, 4, 1, 4, {0, 0, 0x80, 0x3f}},
      {LAC_DTYPE_F64, 10, 1, 8, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
      {LAC_DTYPE_I64, 7, -2, 8, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
      {LAC_DTYPE_U64, 11, 3, 8, {3}},
      {LAC_DTYPE_U32, 11, 3, 4, {3}},
      {LAC_DTYPE_I32, 5, -2, 4, {0xfe, 0xff, 0xff, 0xff}},
      {LAC_DTYPE_I16, 5, -2, 2, {0xfe, 0xff}},
      {LAC_DTYPE_U16, 5, 0xfffe, 2, {0xfe, 0xff}},
      {LAC_DTYPE_I8, 5, -2, 1, {0xfe}},
      {LAC_DTYPE_U8, 5, 0xfe, 1, {0xfe}},
      {LAC_DTYPE_BOOL, 5, 1, 1, {1}},
      {LAC_DTYPE_F16, 5, 0x3c00, 2, {0, 0x3c}},
      {LAC_DTYPE_BF16, 5, 0x3f80, 2, {0x80, 0x3f}},
      {LAC_DTYPE_F8E4M3FN, 5, 0x38, 1, {0x38}},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    build b;
    small_model(&b);
    int64_t dims[2] = {1, 2};
    Onnx__TensorProto *t = build_tensor_shape(&b, "w", cases[at].dtype, 2, dims);
    for (int twice = 0; twice < 2; twice++) {
      if (cases[at].field == 4) PUSH(&b, t, float_data, (float)cases[at].element);
      if (cases[at].field == 5) PUSH(&b, t, int32_data, cases[at].element);
      if (cases[at].field == 7) PUSH(&b, t, int64_data, cases[at].element);
      if (cases[at].field == 10) PUSH(&b, t, double_data, cases[at].element);
      if (cases[at].field == 11) PUSH(&b, t, uint64_data, (uint64_t)cases[at].element);
    }
    PUSH(&b, b.graph, initializer, t);
    loaded l = build_load(&b);
    assert_loaded(l);
    const laci_stored *w = find_stored(l.graph, "w");
    assert_int_equal(w->dtype, cases[at].dtype);
    assert_int_equal(w->shape.rank, 2);
    assert_int_equal(w->size_bytes, 2 * cases[at].size);
    for (int twice = 0; twice < 2; twice++) {
      assert_memory_equal(w->bytes + (size_t)twice * cases[at].size, cases[at].bytes,
                          cases[at].size);
    }
    loaded_clear(&l);
    build_clear(&b);
  }
}

static void reads_raw_empty_text_and_unknown_tensors(void **state) {
  (void)state;
  build b;
  small_model(&b);
  static const uint8_t raw[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  PUSH(&b, b.graph, initializer, build_raw(&b, "half", LAC_DTYPE_F16, 4, raw, 8));
  PUSH(&b, b.graph, initializer, build_raw(&b, "none", LAC_DTYPE_F32, 0, NULL, 0));
  PUSH(&b, b.graph, initializer, build_raw(&b, "nibbles", LAC_DTYPE_I4, 4, raw, 2));
  PUSH(&b, b.graph, initializer, build_raw(&b, "future", 77, 4, raw, 2));
  int64_t one = 1;
  Onnx__TensorProto *text = build_tensor_shape(&b, "text", LAC_DTYPE_TEXT, 1, &one);
  PUSH(&b, text, string_data, ((ProtobufCBinaryData){2, (uint8_t *)"ab"}));
  PUSH(&b, b.graph, initializer, text);
  int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  Onnx__TensorProto *deep = build_tensor_shape(&b, "deep", LAC_DTYPE_F32, 9, ones);
  PUSH(&b, deep, float_data, 5);
  PUSH(&b, b.graph, initializer, deep);
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_memory_equal(find_stored(l.graph, "half")->bytes, raw, 8);
  assert_int_equal(find_stored(l.graph, "none")->size_bytes, 0);
  assert_non_null(find_stored(l.graph, "none")->bytes);
  assert_int_equal(find_stored(l.graph, "nibbles")->size_bytes, 4);
  assert_memory_equal(find_stored(l.graph, "nibbles")->bytes, "\1\0\2\0", 4);
  assert_int_equal(find_stored(l.graph, "future")->dtype, LAC_DTYPE_NONE);
  assert_int_equal(find_stored(l.graph, "text")->dtype, LAC_DTYPE_TEXT);
  assert_int_equal(find_stored(l.graph, "deep")->shape.rank, -1);
  assert_int_equal(find_stored(l.graph, "deep")->size_bytes, 4);
  loaded_clear(&l);
  build_clear(&b);
}

static void hands_out_constant_nodes_as_stored_tensors(void **state) {
  (void)state;
  build b;
  small_model(&b);
  static const float numbers[2] = {1.5f, -2};
  Onnx__AttributeProto *a =
      build_attr(&b, build_node(&b, b.graph, "Constant", "", "c0"), "value", 4);
  a->t = build_raw(&b, "ignored", LAC_DTYPE_F32, 2, numbers, 8);
  a = build_attr(&b, build_node(&b, b.graph, "Constant", "", "c1"), "value_float", 1);
  a->has_f = 1;
  a->f = 2.5f;
  a = build_attr(&b, build_node(&b, b.graph, "Constant", "", "c2"), "value_floats", 6);
  PUSH(&b, a, floats, 3.5f);
  a = build_attr(&b, build_node(&b, b.graph, "Constant", "", "c3"), "value_int", 2);
  a = build_attr(&b, build_node(&b, b.graph, "Constant", "", "c4"), "value_ints", 7);
  PUSH(&b, a, ints, 7);
  PUSH(&b, a, ints, -8);
  a = build_attr(&b, build_node(&b, b.graph, "Constant", "", "c5"), "value_string", 3);
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->n_stored, 5);
  assert_int_equal(l.graph->n_nodes, 2); /* the text stays a node */
  const laci_stored *c0 = find_stored(l.graph, "c0");
  assert_true(c0->in_constant_node && !c0->in_function && !c0->overridable);
  assert_memory_equal(c0->bytes, numbers, 8);
  assert_int_equal(find_stored(l.graph, "c1")->shape.rank, 0);
  float f;
  memcpy(&f, find_stored(l.graph, "c1")->bytes, sizeof f);
  assert_true(f == 2.5f);
  assert_int_equal(find_stored(l.graph, "c2")->size_bytes, 4);
  int64_t i[2];
  memcpy(i, find_stored(l.graph, "c3")->bytes, 8);
  assert_int_equal(i[0], 0); /* a number that is zero may be left out */
  memcpy(i, find_stored(l.graph, "c4")->bytes, 16);
  assert_int_equal(i[1], -8);
  loaded_clear(&l);
  build_clear(&b);
}

static void converts_attributes_of_all_kinds(void **state) {
  (void)state;
  build b;
  small_model(&b);
  Onnx__NodeProto *node = build_node(&b, b.graph, "Mine", "x", "m");
  node->domain = (char *)"my.domain";
  build_opset(&b, "my.domain", 3);
  static const float number = 4;
  Onnx__AttributeProto *a = build_attr(&b, node, "i", 2);
  a->has_i = 1;
  a->i = -5;
  a = build_attr(&b, node, "f", 0); /* no type: the field tells */
  a->has_f = 1;
  a->f = 0.5f;
  a = build_attr(&b, node, "s", 3);
  a->has_s = 1;
  a->s = (ProtobufCBinaryData){4, (uint8_t *)"SAME"};
  a = build_attr(&b, node, "ints", 7);
  PUSH(&b, a, ints, 9);
  a = build_attr(&b, node, "strings", 8);
  PUSH(&b, a, strings, ((ProtobufCBinaryData){2, (uint8_t *)"ab"}));
  PUSH(&b, a, strings, ((ProtobufCBinaryData){0, NULL}));
  a = build_attr(&b, node, "t", 4);
  a->t = build_raw(&b, "", LAC_DTYPE_F32, 1, &number, 4);
  loaded l = build_load(&b);
  assert_loaded(l);
  const laci_node *mine = &l.graph->nodes[1];
  assert_string_equal(mine->domain, "my.domain");
  assert_int_equal(mine->version, 3);
  assert_null(mine->op);
  size_t n;
  assert_int_equal(laci_node_int(mine, "i", 0), -5);
  assert_true(laci_node_float(mine, "f", 0) == 0.5f);
  assert_string_equal(laci_node_text(mine, "s", ""), "SAME");
  assert_int_equal(laci_node_ints(mine, "ints", &n)[0], 9);
  const laci_attr *texts = laci_node_attr(mine, "strings");
  assert_int_equal(texts->n, 2);
  assert_string_equal(texts->texts[0], "ab");
  assert_string_equal(texts->texts[1], "");
  assert_true(laci_node_attr(mine, "t")->tensor->f[0] == 4);
  loaded_clear(&l);
  build_clear(&b);
}

/** Choose(cond){ then: reads x, defines t, shadows z } whose else body has a Loop that reads w two
 * levels out. */
static void finds_what_bodies_capture(void **state) {
  (void)state;
  build b;
  build_init(&b);
  build_input(&b, "cond", NULL);
  build_input(&b, "x", "4");
  build_input(&b, "z", "4");
  build_input(&b, "w", "4");
  build_input(&b, "unused", "4");
  Onnx__NodeProto *node = build_node(&b, b.graph, "Choose", "cond", "y");
  node->domain = build_text(&b, "my"); /* nobody knows what this does with its bodies */
  Onnx__GraphProto *then = build_graph(&b), *otherwise = build_graph(&b), *loop = build_graph(&b);
  PUSH(&b, then, initializer, build_raw(&b, "z", LAC_DTYPE_F32, 1, "abcd", 4));
  build_node(&b, then, "Add", "x z", "t");
  build_node(&b, then, "Relu", "t", "r");
  PUSH(&b, then, output, build_info(&b, "r", 1, NULL));
  PUSH(&b, loop, input, build_info(&b, "i", 7, NULL));
  build_node(&b, loop, "Mul", "w here", "v");
  build_node(&b, loop, "Add", "v x", "o");
  PUSH(&b, loop, output, build_info(&b, "o", 1, NULL));
  build_node(&b, otherwise, "Relu", "x", "here");
  build_attr(&b, build_node(&b, otherwise, "Loop", "- cond", "q"), "body", 5)->g = loop;
  PUSH(&b, otherwise, output, build_info(&b, "q", 1, NULL));
  build_attr(&b, node, "then_branch", 5)->g = then;
  build_attr(&b, node, "else_branch", 5)->g = otherwise;
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  const laci_node *branch = &l.graph->nodes[0];
  assert_int_equal(l.graph->n_stored, 0);
  assert_int_equal(branch->n_captures, 3);
  assert_string_equal(value_name(l.graph, branch->captures[0]), "x");
  assert_string_equal(value_name(l.graph, branch->captures[1]), "cond");
  assert_string_equal(value_name(l.graph, branch->captures[2]), "w");
  assert_int_equal(laci_node_attr(branch, "then_branch")->kind, LACI_ATTR_OTHER);
  loaded_clear(&l);
  build_clear(&b);
}

/** Up to where a body defines a name itself, the name is the outer value. */
static void a_name_is_captured_until_the_body_defines_it(void **state) {
  (void)state;
  build b;
  build_init(&b);
  build_input(&b, "cond", NULL);
  build_input(&b, "a", "4");
  build_input(&b, "c", "4");
  Onnx__GraphProto *body = build_graph(&b);
  build_node(&b, body, "Relu", "a", "a");  /* reads the outer one, then hides it */
  build_node(&b, body, "Const", "-", "c"); /* hides the outer one from the start */
  build_node(&b, body, "Add", "a c", "r");
  PUSH(&b, body, output, build_info(&b, "r", 1, NULL));
  build_attr(&b, build_node(&b, b.graph, "If", "cond", "y"), "then_branch", 5)->g = body;
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_int_equal(l.graph->nodes[0].n_captures, 1);
  assert_string_equal(value_name(l.graph, l.graph->nodes[0].captures[0]), "a");
  loaded_clear(&l);
  build_clear(&b);
}

static void initializers_listed_as_inputs_are_overridable_from_ir_4(void **state) {
  (void)state;
  for (int ir = 3; ir <= 4; ir++) {
    build b;
    small_model(&b);
    b.model->ir_version = ir;
    PUSH(&b, b.graph, initializer, build_raw(&b, "w", LAC_DTYPE_F32, 1, "abcd", 4));
    build_input(&b, "w", "1");
    loaded l = build_load(&b);
    assert_loaded(l);
    assert_int_equal(find_stored(l.graph, "w")->overridable, ir == 4);
    assert_int_equal(l.graph->n_inputs, 1);
    loaded_clear(&l);
    build_clear(&b);
  }
}

static void a_sparse_initializer_is_a_value_nobody_knows(void **state) {
  (void)state;
  build b;
  small_model(&b);
  Onnx__SparseTensorProto *sparse =
      BUILD_NEW(&b, Onnx__SparseTensorProto, ONNX__SPARSE_TENSOR_PROTO__INIT);
  sparse->values = build_raw(&b, "sp", LAC_DTYPE_F32, 1, "abcd", 4);
  PUSH(&b, b.graph, sparse_initializer, sparse);
  build_node(&b, b.graph, "Add", "y sp", "z");
  loaded l = build_load(&b);
  assert_loaded(l);
  int value = laci_graph_find_value(l.graph, "sp");
  assert_true(l.graph->values[value].producer >= 0);
  assert_null(l.graph->nodes[l.graph->values[value].producer].op);
  loaded_clear(&l);
  build_clear(&b);
}

static void sorts_nodes_and_keeps_odd_names(void **state) {
  (void)state;
  build b;
  build_init(&b);
  build_input(&b, "x", "4");
  build_node(&b, b.graph, "Relu", "m", "y")->name = (char *)"again";
  build_node(&b, b.graph, "Relu", "x", "m")->name = (char *)"again";
  build_node(&b, b.graph, "Relu", "x", "n");
  build_output(&b, "y");
  loaded l = build_load(&b);
  assert_loaded(l);
  assert_string_equal(value_name(l.graph, l.graph->nodes[0].outputs[0]), "m");
  assert_string_not_equal(l.graph->nodes[0].name, l.graph->nodes[1].name);
  loaded_clear(&l);
  build_clear(&b);
}

/* ---- Refusals: what is changed in the small model, and the words the message must have ---- */

static void no_outputs(build *b) { b->graph->n_output = 0; }
static void unnamed_output(build *b) { b->graph->output[0]->name = (char *)""; }
static void unknown_output(build *b) { build_output(b, "nowhere"); }
static void two_producers(build *b) { build_node(b, b->graph, "Abs", "x", "y"); }
static void two_initializers(build *b) {
  for (int at = 0; at < 2; at++) {
    PUSH(b, b->graph, initializer, build_raw(b, "w", LAC_DTYPE_F32, 1, "abcd", 4));
  }
}
static void unnamed_initializer(build *b) {
  PUSH(b, b->graph, initializer, build_raw(b, "", LAC_DTYPE_F32, 1, "abcd", 4));
}
static void short_data(build *b) {
  PUSH(b, b->graph, initializer, build_raw(b, "w", LAC_DTYPE_F32, 2, "abcd", 4));
}
static void enormous_dims(build *b) {
  int64_t dims[3] = {INT64_MAX / 2, 3, 5};
  PUSH(b, b->graph, initializer, build_tensor_shape(b, "w", LAC_DTYPE_F32, 3, dims));
}
static void lying_dims(build *b) {
  int64_t dim = INT64_C(1) << 50;
  PUSH(b, b->graph, initializer, build_tensor_shape(b, "w", LAC_DTYPE_F32, 1, &dim));
}
static void negative_dim(build *b) {
  int64_t dim = -4;
  PUSH(b, b->graph, initializer, build_tensor_shape(b, "w", LAC_DTYPE_F32, 1, &dim));
}
static void data_twice(build *b) {
  Onnx__TensorProto *t = build_raw(b, "w", LAC_DTYPE_F32, 1, "abcd", 4);
  PUSH(b, t, float_data, 1);
  PUSH(b, b->graph, initializer, t);
}
static void untyped_tensor(build *b) {
  PUSH(b, b->graph, initializer, build_raw(b, "w", 0, 1, "abcd", 4));
}
static void missing_texts(build *b) {
  PUSH(b, b->graph, initializer, build_raw(b, "w", LAC_DTYPE_TEXT, 3, NULL, 0));
}
static void cycle(build *b) {
  build_node(b, b->graph, "Add", "x q", "p");
  build_node(b, b->graph, "Relu", "p", "q");
}
static void undefined_read(build *b) { build_node(b, b->graph, "Relu", "ghost", "p"); }
static void no_operator(build *b) { build_node(b, b->graph, "", "x", "p"); }
static void old_opset(build *b) { b->model->opset_import[0]->version = 6; }
static void new_opset(build *b) { b->model->opset_import[0]->version = 29; }
static void no_opset(build *b) { b->model->n_opset_import = 0; }
static void old_ir(build *b) { b->model->ir_version = 2; }
static void new_ir(build *b) { b->model->ir_version = 15; }
static void no_ir(build *b) { b->model->has_ir_version = 0; }
static void no_graph(build *b) { b->model->graph = NULL; }
static void negative_size(build *b) { build_input(b, "neg", "-7"); }
static void input_twice(build *b) { build_input(b, "x", "4"); }
static void input_from_node(build *b) { build_node(b, b->graph, "Relu", "y", "x"); }
static void attribute_reference(build *b) {
  build_attr(b, b->graph->node[0], "alpha", 1)->ref_attr_name = (char *)"beta";
}
static void external_without_folder(build *b) {
  PUSH(b, b->graph, initializer, build_external(b, "w", 1, "w.bin", "0", "4"));
}

static void refuses_what_it_cannot_mean(void **state) {
  (void)state;
  static const struct {
    void (*change)(build *b);
    lac_status status;
    const char *words;
  } cases[] = {
      {no_outputs, LAC_BAD_FILE, "no outputs"},
      {unnamed_output, LAC_BAD_FILE, "output without a name"},
      {unknown_output, LAC_BAD_FILE, "'nowhere'"},
      {two_producers, LAC_BAD_FILE, "'y'"},
      {two_initializers, LAC_BAD_FILE, "'w'"},
      {unnamed_initializer, LAC_BAD_FILE, "initializer without a name"},
      {short_data, LAC_BAD_FILE, "'w': 4 bytes of data, but f32 [2] takes 8"},
      {enormous_dims, LAC_BAD_FILE, "'w': its dims overflow"},
      {lying_dims, LAC_BAD_FILE, "'w': 0 bytes of data"},
      {negative_dim, LAC_BAD_FILE, "'w': dim 0 is -4"},
      {data_twice, LAC_BAD_FILE, "'w': its data is given twice"},
      {untyped_tensor, LAC_BAD_FILE, "'w': 0 is no element type"},
      {missing_texts, LAC_BAD_FILE, "'w': 0 texts, but its dims want 3"},
      {cycle, LAC_BAD_FILE, "cycle"},
      {undefined_read, LAC_BAD_FILE, "'ghost'"},
      {no_operator, LAC_BAD_FILE, "no operator"},
      {old_opset, LAC_UNSUPPORTED, "opset 6 of ai.onnx; 7 to 28"},
      {new_opset, LAC_UNSUPPORTED, "opset 29 of ai.onnx; 7 to 28"},
      {no_opset, LAC_BAD_FILE, "imports no operators of ai.onnx"},
      {old_ir, LAC_UNSUPPORTED, "IR version 2; 3 to 14"},
      {new_ir, LAC_UNSUPPORTED, "IR version 15; 3 to 14"},
      {no_ir, LAC_BAD_FILE, "not an ONNX model: it has no IR version"},
      {no_graph, LAC_BAD_FILE, "not an ONNX model: it has no graph"},
      {negative_size, LAC_BAD_FILE, "'neg': -7 is no size"},
      {input_twice, LAC_BAD_FILE, "'x'"},
      {input_from_node, LAC_BAD_FILE, "'x'"},
      {attribute_reference, LAC_BAD_FILE, "'beta', but is in no function"},
      {external_without_folder, LAC_BAD_FILE, "'w': external data 'w.bin'"},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    build b;
    small_model(&b);
    cases[at].change(&b);
    loaded l = build_load(&b);
    assert_refused(l, cases[at].status, cases[at].words);
    build_clear(&b);
  }
}

static void every_failing_allocation_is_reported(void **state) {
  (void)state;
  build b;
  small_model(&b);
  PUSH(&b, b.graph, initializer, build_raw(&b, "w", LAC_DTYPE_F32, 1, "abcd", 4));
  Onnx__AttributeProto *a =
      build_attr(&b, build_node(&b, b.graph, "Constant", "", "c"), "value_ints", 7);
  PUSH(&b, a, ints, 7);
  size_t n;
  uint8_t *bytes = build_bytes(&b, &n);
  for (long nth = 1; nth < 10000; nth++) {
    loaded l = {0};
    laci_memory_fail_from(nth);
    l.status = laci_onnx_load_memory(bytes, n, "/tmp", &l.file, &l.graph, &l.err);
    laci_memory_fail_from(0);
    if (!l.status) {
      assert_true(nth > 20);
      loaded_clear(&l);
      build_clear(&b);
      return;
    }
    assert_refused(l, LAC_NO_MEMORY, "not enough memory");
  }
  fail_msg("loading never succeeds");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_inputs_outputs_and_nodes),
      cmocka_unit_test(sizes_of_one_name_are_one_symbol),
      cmocka_unit_test(reads_typed_fields_of_every_type),
      cmocka_unit_test(reads_raw_empty_text_and_unknown_tensors),
      cmocka_unit_test(hands_out_constant_nodes_as_stored_tensors),
      cmocka_unit_test(converts_attributes_of_all_kinds),
      cmocka_unit_test(finds_what_bodies_capture),
      cmocka_unit_test(a_name_is_captured_until_the_body_defines_it),
      cmocka_unit_test(initializers_listed_as_inputs_are_overridable_from_ir_4),
      cmocka_unit_test(a_sparse_initializer_is_a_value_nobody_knows),
      cmocka_unit_test(sorts_nodes_and_keeps_odd_names),
      cmocka_unit_test(refuses_what_it_cannot_mean),
      cmocka_unit_test(every_failing_allocation_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
