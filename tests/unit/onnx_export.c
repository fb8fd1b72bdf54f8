/* SPDX-License-Identifier: Apache-2.0
 * Saving: changed tensors in the kind of field they came from, everything else as it was. */
#include "graph/graph.h"
#include "onnx_build.h"

#include <sys/stat.h>

static void start(build *b) {
  build_init(b);
  build_input(b, "x", "4");
  build_node(b, b->graph, "Relu", "x", "y");
  build_output(b, "y");
}

static Onnx__StringStringEntryProto *entry(build *b, const char *key, const char *value) {
  Onnx__StringStringEntryProto *e =
      BUILD_NEW(b, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
  e->key = build_text(b, key);
  e->value = build_text(b, value);
  return e;
}

/** A field of a number that no version of the standard has. */
static void add_unknown(build *b, ProtobufCMessage *message) {
  static uint8_t bytes[] = {3, 'n', 'e', 'w'};
  ProtobufCMessageUnknownField *field = build_alloc(b, 1, sizeof *field);
  *field = (ProtobufCMessageUnknownField){
      .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 4, .data = bytes};
  message->n_unknown_fields = 1;
  message->unknown_fields = field;
}

/** Loads the model from memory, saves it, and gives back what was written. */
static uint8_t *save_and_read(loaded *l, size_t *n) {
  folder dir;
  folder_make(&dir);
  const char *out = in_folder(&dir, "o.onnx");
  if (laci_onnx_save(l->file, l->graph, out, false, &l->err)) fail_msg("%s", l->err.text);
  uint8_t *bytes = read_bytes(out, n);
  assert_int_equal(count_files(&dir), 1);
  folder_remove(&dir);
  return bytes;
}

static void everything_survives_byte_for_byte(void **state) {
  (void)state;
  build b;
  start(&b);
  b.model->producer_name = (char *)"somebody";
  b.model->doc_string = (char *)"";
  b.model->has_model_version = 1; /* zero, but there */
  PUSH(&b, b.model, metadata_props, entry(&b, "key", "value"));
  PUSH(&b, b.graph, metadata_props, entry(&b, "key", "graph"));
  PUSH(&b, b.graph->node[0], metadata_props, entry(&b, "key", "node"));
  PUSH(&b, b.graph->input[0], metadata_props, entry(&b, "key", "input"));
  b.graph->node[0]->doc_string = (char *)"a comment \xc3\xa9";
  add_unknown(&b, &b.model->base);
  add_unknown(&b, &b.graph->base);
  add_unknown(&b, &b.graph->node[0]->base);
  Onnx__TensorProto *w = build_raw(&b, "w", LAC_DTYPE_F32, 1, "abcd", 4);
  PUSH(&b, w, metadata_props, entry(&b, "key", "tensor"));
  add_unknown(&b, &w->base);
  PUSH(&b, b.graph, initializer, w);
  Onnx__TensorAnnotation *note =
      BUILD_NEW(&b, Onnx__TensorAnnotation, ONNX__TENSOR_ANNOTATION__INIT);
  note->tensor_name = (char *)"w";
  PUSH(&b, note, quant_parameter_tensor_names, entry(&b, "SCALE_TENSOR", "s"));
  PUSH(&b, b.graph, quantization_annotation, note);
  Onnx__TrainingInfoProto *info =
      BUILD_NEW(&b, Onnx__TrainingInfoProto, ONNX__TRAINING_INFO_PROTO__INIT);
  info->algorithm = build_graph(&b);
  build_node(&b, info->algorithm, "Adam", "w", "w2");
  PUSH(&b, info, update_binding, entry(&b, "w", "w2"));
  PUSH(&b, b.model, training_info, info);
  PUSH(&b, b.graph, value_info, build_info(&b, "y", 1, "N"));
  Onnx__AttributeProto *type = build_attr(&b, b.graph->node[0], "tp", 13);
  type->tp = b.graph->input[0]->type;
  size_t n, n_out;
  uint8_t *bytes = build_bytes(&b, &n);
  loaded l = build_load(&b);
  assert_loaded(l);
  uint8_t *out = save_and_read(&l, &n_out);
  assert_int_equal(n_out, n);
  assert_memory_equal(out, bytes, n);
  laci_free(out);
  loaded_clear(&l);
  build_clear(&b);
}

/** Numbers may come packed or one by one, whatever the description says; both mean the same. */
static void packed_and_unpacked_numbers_are_read(void **state) {
  (void)state;
  static const uint8_t bytes[] = {
      0x08, 8,             /* ir_version */
      0x42, 2,   0x10, 17, /* opset_import { version } */
      0x3a, 55,            /* graph */
      0x0a, 22,  0x0a, 1,    'x', 0x12, 1,    'y',  0x22, 4,
      'T',  'e', 's',  't',                                  /* node x -> y, Test */
      0x2a, 8,   0x0a, 1,    'p', 0x42, 3,    1,    2,    3, /* attribute p { ints, packed } */
      0x2a, 19,  0x0a, 2,    1,   2,    0x10, 1, /* initializer { dims packed [1, 2], f32 */
      0x42, 1,   'w',  0x25, 0,   0,    0x80, 0x3f, 0x25, 0,
      0,    0,   0x40,            /* w, float_data one by one } */
      0x5a, 3,   0x0a, 1,    'x', /* input x */
      0x62, 3,   0x0a, 1,    'y', /* output y */
  };
  loaded l = {0};
  l.status = laci_onnx_load_memory(bytes, sizeof bytes, NULL, &l.file, &l.graph, &l.err);
  assert_loaded(l);
  size_t n;
  const laci_node *node = &l.graph->nodes[0];
  assert_int_equal(laci_node_ints(node, "p", &n)[2], 3);
  assert_int_equal(n, 3);
  const laci_stored *w = find_stored(l.graph, "w");
  assert_int_equal(w->shape.rank, 2);
  assert_int_equal(w->shape.dims[1], 2);
  float two;
  memcpy(&two, w->bytes + 4, sizeof two);
  assert_true(two == 2);
  loaded_clear(&l);
}

/** One tensor in each kind of field; every second element is changed. */
static void changed_tensors_go_back_into_their_fields(void **state) {
  (void)state;
  build b;
  start(&b);
  int64_t two = 2;
  Onnx__TensorProto *t;
  PUSH(&b, b.graph, initializer, build_raw(&b, "raw", LAC_DTYPE_BF16, 2, "abcd", 4));
  t = build_tensor_shape(&b, "floats", LAC_DTYPE_F32, 1, &two);
  PUSH(&b, t, float_data, 1);
  PUSH(&b, t, float_data, 2);
  PUSH(&b, b.graph, initializer, t);
  t = build_tensor_shape(&b, "bytes", LAC_DTYPE_I8, 1, &two);
  PUSH(&b, t, int32_data, -3);
  PUSH(&b, t, int32_data, 4);
  PUSH(&b, b.graph, initializer, t);
  t = build_tensor_shape(&b, "halves", LAC_DTYPE_F16, 1, &two);
  PUSH(&b, t, int32_data, (int32_t)0xffffbc00); /* a writer that extends the sign */
  PUSH(&b, t, int32_data, 0x3c00);
  PUSH(&b, b.graph, initializer, t);
  t = build_tensor_shape(&b, "u32", LAC_DTYPE_U32, 1, &two);
  PUSH(&b, t, uint64_data, 5);
  PUSH(&b, t, uint64_data, 6);
  PUSH(&b, b.graph, initializer, t);
  Onnx__AttributeProto *a =
      build_attr(&b, build_node(&b, b.graph, "Constant", "", "number"), "value_float", 1);
  a->has_f = 1;
  a->f = 9;
  a = build_attr(&b, build_node(&b, b.graph, "Constant", "", "list"), "value_ints", 7);
  PUSH(&b, a, ints, 1);
  PUSH(&b, a, ints, 2);
  loaded l = build_load(&b);
  assert_loaded(l);
  for (int at = 0; at < l.graph->n_stored; at++) {
    laci_stored *stored = &l.graph->stored[at];
    uint8_t *bytes = laci_stored_writable_bytes(stored);
    size_t half = stored->shape.rank ? stored->size_bytes / 2 : 0;
    memset(bytes + half, 0xff, stored->size_bytes - half);
  }
  size_t n;
  uint8_t *bytes = save_and_read(&l, &n);
  Onnx__ModelProto *out = onnx__model_proto__unpack(NULL, n, bytes);
  assert_non_null(out);
  Onnx__TensorProto **tensors = out->graph->initializer;
  assert_memory_equal(tensors[0]->raw_data.data, "ab\xff\xff", 4);
  assert_int_equal(tensors[1]->n_float_data, 2);
  assert_true(tensors[1]->float_data[0] == 1);
  assert_true(tensors[1]->float_data[1] != tensors[1]->float_data[1]);
  assert_int_equal(tensors[2]->int32_data[0], -3);
  assert_int_equal(tensors[2]->int32_data[1], -1);
  assert_int_equal(tensors[3]->int32_data[0], (int32_t)0xffffbc00);
  assert_int_equal(tensors[3]->int32_data[1], 0xffff);
  assert_int_equal(tensors[4]->uint64_data[0], 5);
  assert_int_equal(tensors[4]->uint64_data[1], 0xffffffff);
  assert_true(out->graph->node[1]->attribute[0]->f != out->graph->node[1]->attribute[0]->f);
  assert_int_equal(out->graph->node[2]->attribute[0]->ints[0], 1);
  assert_int_equal(out->graph->node[2]->attribute[0]->ints[1], -1);
  onnx__model_proto__free_unpacked(out, NULL);
  laci_free(bytes);
  /* the decoded file itself is as it was */
  assert_true(l.file->model->graph->initializer[1]->float_data[1] == 2);
  assert_true(l.file->model->graph->node[1]->attribute[0]->f == 9);
  loaded_clear(&l);
  build_clear(&b);
}

static void an_existing_file_is_kept_unless_forced(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  build b;
  start(&b);
  build_save(&b, in_folder(&dir, "in.onnx"));
  loaded l = load_path(in_folder(&dir, "in.onnx"));
  assert_loaded(l);
  write_bytes(in_folder(&dir, "o.onnx"), "precious", 8);
  const char *out = in_folder(&dir, "o.onnx");
  assert_int_equal(laci_onnx_save(l.file, l.graph, out, false, &l.err), LAC_EXISTS);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "in.onnx"), true, &l.err),
                   LAC_BAD_ARGUMENT);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "no/o.onnx"), true, &l.err),
                   LAC_NOT_FOUND);
  assert_int_equal(laci_onnx_save(l.file, l.graph, dir.path, true, &l.err), LAC_BAD_ARGUMENT);
  size_t n;
  uint8_t *bytes = read_bytes(out, &n);
  assert_memory_equal(bytes, "precious", 8);
  laci_free(bytes);
  assert_int_equal(laci_onnx_save(l.file, l.graph, out, true, &l.err), LAC_OK);
  assert_int_equal(count_files(&dir), 2);
  loaded again = load_path(out);
  assert_loaded(again);
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
  build_clear(&b);
}

static void every_failing_allocation_leaves_no_file(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  build b;
  start(&b);
  static const float numbers[4] = {1, 2, 3, 4};
  write_bytes(in_folder(&dir, "w.bin"), numbers, sizeof numbers);
  PUSH(&b, b.graph, initializer, build_external(&b, "w", 4, "w.bin", "0", "16"));
  int64_t one = 1;
  Onnx__TensorProto *t = build_tensor_shape(&b, "half", LAC_DTYPE_F16, 1, &one);
  PUSH(&b, t, int32_data, 1);
  PUSH(&b, b.graph, initializer, t);
  build_save(&b, in_folder(&dir, "in.onnx"));
  loaded l = load_path(in_folder(&dir, "in.onnx"));
  assert_loaded(l);
  memset(laci_stored_writable_bytes(&l.graph->stored[0]), 1, 16);
  memset(laci_stored_writable_bytes(&l.graph->stored[1]), 1, 2);
  lac_status st = LAC_NO_MEMORY;
  for (long nth = 1; st == LAC_NO_MEMORY; nth++) {
    assert_true(nth < 1000);
    assert_int_equal(count_files(&dir), 2);
    const char *out = in_folder(&dir, "o.onnx");
    laci_memory_fail_from(nth);
    st = laci_onnx_save(l.file, l.graph, out, false, &l.err);
    laci_memory_fail_from(0);
  }
  assert_int_equal(st, LAC_OK);
  loaded_clear(&l);
  folder_remove(&dir);
  build_clear(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_survives_byte_for_byte),
      cmocka_unit_test(packed_and_unpacked_numbers_are_read),
      cmocka_unit_test(changed_tensors_go_back_into_their_fields),
      cmocka_unit_test(an_existing_file_is_kept_unless_forced),
      cmocka_unit_test(every_failing_allocation_leaves_no_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
