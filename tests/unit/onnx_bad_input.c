/* SPDX-License-Identifier: Apache-2.0
 * Files that are no models, or damaged ones: one clear line, never a crash. */
#include "graph/graph.h"
#include "onnx_build.h"

#include <sys/stat.h>

/** A model with a bit of everything. */
static void rich_model(build *b) {
  build_init(b);
  build_input(b, "x", "N 4");
  static const float numbers[4] = {1, 2, 3, 4};
  PUSH(b, b->graph, initializer, build_raw(b, "w", LAC_DTYPE_F32, 4, numbers, sizeof numbers));
  int64_t two = 2;
  Onnx__TensorProto *t = build_tensor_shape(b, "h", LAC_DTYPE_F16, 1, &two);
  PUSH(b, t, int32_data, 1);
  PUSH(b, t, int32_data, 2);
  PUSH(b, b->graph, initializer, t);
  Onnx__AttributeProto *a =
      build_attr(b, build_node(b, b->graph, "Constant", "", "c"), "value_ints", 7);
  PUSH(b, a, ints, 4);
  Onnx__FunctionProto *f = BUILD_NEW(b, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->name = (char *)"F";
  f->domain = (char *)"local";
  build_names(b, &f->input, &f->n_input, "v");
  build_names(b, &f->output, &f->n_output, "r");
  PUSH(b, f, node, build_node_of(b, "Abs", "v", "r"));
  build_attr(b, f->node[0], "alpha", 2)->ref_attr_name = (char *)"alpha";
  PUSH(b, b->model, functions, f);
  build_node(b, b->graph, "F", "x", "t")->domain = (char *)"local";
  Onnx__GraphProto *body = build_graph(b);
  build_node(b, body, "Add", "t w", "q");
  PUSH(b, body, output, build_info(b, "q", 1, "N 4"));
  build_attr(b, build_node(b, b->graph, "If", "c", "y"), "then_branch", 5)->g = body;
  build_output(b, "y");
}

/** Loads bytes; whatever comes out must hang together. */
static lac_status try_load(const uint8_t *bytes, size_t n) {
  loaded l = {0};
  l.status = laci_onnx_load_memory(bytes, n, NULL, &l.file, &l.graph, &l.err);
  assert_int_equal(l.status != LAC_OK, l.err.text[0] != '\0');
  assert_int_equal(l.status == LAC_OK, l.graph != NULL);
  assert_null(strchr(l.err.text, '\n'));
  for (int at = 0; l.graph && at < l.graph->n_stored; at++) {
    assert_non_null(laci_stored_writable_bytes(&l.graph->stored[at])); /* reads every byte */
  }
  lac_status st = l.status;
  loaded_clear(&l);
  return st;
}

static void every_truncation_is_refused_or_a_model(void **state) {
  (void)state;
  build b;
  rich_model(&b);
  size_t n;
  uint8_t *bytes = build_bytes(&b, &n);
  int refused = 0;
  for (size_t length = 0; length < n; length++) {
    uint8_t *cut = laci_alloc(length, 1); /* its own block: sanitizers see reads beyond it */
    memcpy(cut, bytes, length);
    refused += try_load(cut, length) != LAC_OK;
    laci_free(cut);
  }
  assert_true(refused >= (int)n - 4);
  assert_int_equal(try_load(bytes, n), LAC_OK);
  build_clear(&b);
}

static void every_changed_bit_is_survived(void **state) {
  (void)state;
  build b;
  rich_model(&b);
  size_t n;
  uint8_t *bytes = build_bytes(&b, &n);
  for (size_t bit = 0; bit < 8 * n; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    (void)try_load(bytes, n);
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  for (size_t at = 0; at < n; at++) { /* lengths of 2^35 and more */
    uint8_t old[5] = {0};
    size_t k = n - at < 5 ? n - at : 5;
    memcpy(old, bytes + at, k);
    memset(bytes + at, 0xff, k);
    (void)try_load(bytes, n);
    memcpy(bytes + at, old, k);
  }
  build_clear(&b);
}

/** Graphs in attributes of nodes of graphs ... `depth` of them, written by hand from the inside
 * out. */
static uint8_t *nested_model(int depth, size_t *n) {
  size_t capacity = (size_t)depth * 64 + 64, used = 0;
  uint8_t *bytes = laci_alloc(capacity, 1), *at = bytes + capacity;
  for (int level = 0; level < depth; level++) {
    static const uint8_t tags[3] = {0x32, 0x2a, 0x0a}; /* attribute.g, node.attribute, graph.node */
    for (int tag = 0; tag < 3; tag++) {
      uint8_t length[10];
      int k = 0;
      size_t rest = used;
      do {
        length[k++] = (uint8_t)(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0);
        rest >>= 7;
      } while (rest);
      at -= k;
      memcpy(at, length, (size_t)k);
      *--at = tags[tag];
      used += (size_t)k + 1;
    }
  }
  static const uint8_t head[] = {0x08, 8, 0x3a};
  uint8_t *model = laci_alloc(capacity + 64, 1), *to = model;
  memcpy(to, head, sizeof head);
  to += sizeof head;
  for (size_t rest = used;; rest >>= 7) {
    *to++ = (uint8_t)(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0);
    if (rest <= 0x7f) break;
  }
  memcpy(to, at, used);
  *n = (size_t)(to - model) + used;
  laci_free(bytes);
  return model;
}

static void nesting_is_bounded(void **state) {
  (void)state;
  static const struct {
    int depth;
    const char *words;
  } cases[] = {{60, "no operator"}, {70, "nested too deeply"}, {100000, "nested too deeply"}};
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    size_t n;
    uint8_t *bytes = nested_model(cases[at].depth, &n);
    loaded l = {0};
    l.status = laci_onnx_load_memory(bytes, n, NULL, &l.file, &l.graph, &l.err);
    assert_refused(l, LAC_BAD_FILE, cases[at].words);
    laci_free(bytes);
  }
}

static void other_files_are_named_and_refused(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
    const char *words;
  } cases[] = {
      {"", 0, "x.onnx: not an ONNX model: an empty file"},
      {"hello, this is a text\n", 22, "x.onnx: not an ONNX model: "},
      {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, "x.onnx: not an ONNX model: "},
      {"PK\3\4\x14\0\0\0\0\0", 10, "x.onnx: not an ONNX model: "},
      {"\0\0\0\0\0\0\0\0", 8, "x.onnx: not an ONNX model: "},
      {"version https://git-lfs.github.com/spec/v1\n", 43, "x.onnx: not an ONNX model: "},
      {"\x08\x08", 2, "x.onnx: not an ONNX model: it has no graph"},
      {"\x08\x08\x3a\x7f", 4, "a field of 127 bytes at byte 2, where 0 are left"},
      {"\x08\x08\x3a\x00\x3a\x00", 6, "a single field given twice at byte 4"},
      {"\x08\x08\x12\x03"
       "a\0b\x3a\x00",
       9, "a text with a zero byte"},
  };
  folder dir;
  folder_make(&dir);
  const char *path = in_folder(&dir, "x.onnx");
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    write_bytes(path, cases[at].bytes, cases[at].n);
    loaded l = load_path(path);
    assert_refused(l, LAC_BAD_FILE, cases[at].words);
  }
  laci_onnx *file;
  laci_graph *graph;
  assert_int_equal(laci_onnx_load(path, &file, &graph, NULL), LAC_BAD_FILE);
  loaded l = load_path(dir.path);
  assert_refused(l, LAC_BAD_FILE, "a directory");
  l = load_path(in_folder(&dir, "nowhere.onnx"));
  assert_refused(l, LAC_NOT_FOUND, "nowhere.onnx: cannot open");
  assert_int_equal(mkfifo(in_folder(&dir, "pipe"), 0600), 0);
  l = load_path(in_folder(&dir, "pipe"));
  assert_refused(l, LAC_BAD_FILE, "not a regular file");
  folder_remove(&dir);
}

static void random_bytes_are_refused(void **state) {
  (void)state;
  uint32_t seed = 1;
  for (int round = 0; round < 3000; round++) {
    uint8_t bytes[64];
    for (size_t at = 0; at < sizeof bytes; at++) {
      seed = seed * 1664525u + 1013904223u;
      bytes[at] = (uint8_t)(seed >> 24);
    }
    assert_int_not_equal(try_load(bytes, sizeof bytes), LAC_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_truncation_is_refused_or_a_model),
      cmocka_unit_test(every_changed_bit_is_survived),
      cmocka_unit_test(nesting_is_bounded),
      cmocka_unit_test(other_files_are_named_and_refused),
      cmocka_unit_test(random_bytes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
