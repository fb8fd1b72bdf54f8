/* SPDX-License-Identifier: Apache-2.0
 * Elements of 4 and 2 bits: a byte each in the graph, packed in every kind of field, and wrong
 * sizes. */
#include "graph/graph.h"
#include "onnx_build.h"

static void start(build *b) {
  build_init(b);
  build_input(b, "x", "4");
  build_node(b, b->graph, "Relu", "x", "y");
  build_output(b, "y");
}

static const struct {
  lac_dtype dtype;
  int64_t n;
  uint8_t packed[4], elements[8];
  size_t size;
} cases[] = {
    {LAC_DTYPE_I4, 5, {0x81, 0x7F, 0xF9}, {1, 0xF8, 0xFF, 7, 0xF9}, 3}, /* junk after the last */
    {LAC_DTYPE_U4, 4, {0x81, 0x7F}, {1, 8, 15, 7}, 2},
    {LAC_DTYPE_F4E2M1, 1, {0x0A}, {10}, 1},
    {LAC_DTYPE_I2, 5, {0x1B, 0x02}, {0xFF, 0xFE, 1, 0, 0xFE}, 2},
    {LAC_DTYPE_U2, 8, {0x1B, 0xE4}, {3, 2, 1, 0, 0, 1, 2, 3}, 2},
    {LAC_DTYPE_U4, 0, {0}, {0}, 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static Onnx__TensorProto *tensor_of(build *b, size_t at, bool raw) {
  if (raw) return build_raw(b, "w", cases[at].dtype, cases[at].n, cases[at].packed, cases[at].size);
  Onnx__TensorProto *t = build_tensor_shape(b, "w", cases[at].dtype, 1, &cases[at].n);
  for (size_t k = 0; k < cases[at].size; k++) PUSH(b, t, int32_data, cases[at].packed[k]);
  return t;
}

static void elements_are_a_byte_each_and_packed_when_saved(void **state) {
  (void)state;
  for (size_t at = 0; at < 2 * N_CASES; at++) {
    const size_t k = at / 2;
    const bool raw = at % 2;
    build b;
    folder dir;
    start(&b);
    PUSH(&b, b.graph, initializer, tensor_of(&b, k, raw));
    loaded l = build_load(&b);
    assert_int_equal(l.status, LAC_OK);
    laci_stored *w = find_stored(l.graph, "w");
    assert_int_equal(w->size_bytes, cases[k].n);
    assert_memory_equal(w->bytes, cases[k].elements, (size_t)cases[k].n);
    uint8_t *fresh = laci_alloc(w->size_bytes + 1, 1);
    memcpy(fresh, w->bytes, w->size_bytes);
    if (w->size_bytes) fresh[0] = 1;
    laci_stored_replace_bytes(w, fresh, false);
    folder_make(&dir);
    assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), false, NULL),
                     LAC_OK);
    loaded again = load_path(in_folder(&dir, "o.onnx"));
    assert_int_equal(again.status, LAC_OK);
    const laci_stored *saved = find_stored(again.graph, "w");
    assert_int_equal(saved->size_bytes, cases[k].n);
    assert_memory_equal(saved->bytes, fresh, (size_t)cases[k].n);
    const Onnx__TensorProto *t = again.file->model->graph->initializer[0];
    assert_int_equal(raw ? t->raw_data.len : t->n_int32_data, cases[k].size);
    loaded_clear(&again);
    loaded_clear(&l);
    folder_remove(&dir);
    build_clear(&b);
  }
}

static void wrong_sizes_are_refused(void **state) {
  (void)state;
  static const struct {
    lac_dtype dtype;
    int64_t n;
    size_t size;
  } wrong[] = {{LAC_DTYPE_I4, 5, 2}, {LAC_DTYPE_I4, 5, 5},         {LAC_DTYPE_U2, 9, 2},
               {LAC_DTYPE_U4, 0, 1}, {LAC_DTYPE_U4, INT64_MAX, 3}, {LAC_DTYPE_F8E5M2, 3, 2}};
  static const uint8_t bytes[8] = {0};
  for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
    build b;
    start(&b);
    PUSH(&b, b.graph, initializer,
         build_raw(&b, "w", wrong[at].dtype, wrong[at].n, bytes, wrong[at].size));
    loaded l = build_load(&b);
    assert_int_equal(l.status, LAC_BAD_FILE);
    assert_non_null(strstr(l.err.text, "tensor 'w'"));
    loaded_clear(&l);
    build_clear(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_are_a_byte_each_and_packed_when_saved),
      cmocka_unit_test(wrong_sizes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
