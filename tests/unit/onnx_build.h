/* SPDX-License-Identifier: Apache-2.0
 * Small models for tests, made with protobuf-c's own structs, and a folder to put files into.
 * Everything lives in one arena; names and arrays given as literals are borrowed. */
#ifndef LAC_TESTS_ONNX_BUILD_H
#define LAC_TESTS_ONNX_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"
#include "onnx/onnx_in.h"

typedef struct build {
  laci_arena arena;
  Onnx__ModelProto *model;
  Onnx__GraphProto *graph;
} build;

#define UNUSED __attribute__((unused))

static UNUSED void *build_alloc(build *b, size_t n, size_t size) {
  void *memory = laci_arena_alloc(&b->arena, n, size);
  assert_non_null(memory);
  return memory;
}

static UNUSED char *build_text(build *b, const char *text) {
  char *copy = laci_arena_text(&b->arena, text);
  assert_non_null(copy);
  return copy;
}

/** Appends to a repeated field: PUSH(b, graph->node, node). */
static UNUSED void build_push(build *b, void *list, size_t *n, const void *item, size_t size) {
  void **array = list;
  char *longer = build_alloc(b, *n + 1, size);
  if (*n) memcpy(longer, *array, *n * size);
  memcpy(longer + *n * size, item, size);
  *array = longer;
  ++*n;
}
#define PUSH(b, owner, field, item)                                                             \
  build_push((b), &(owner)->field, &(owner)->n_##field, (__typeof__(*(owner)->field)[1]){item}, \
             sizeof *(owner)->field)

#define BUILD_NEW(b, Type, init) \
  ((Type *)memcpy(build_alloc((b), 1, sizeof(Type)), &(Type)init, sizeof(Type)))

static UNUSED void build_opset(build *b, const char *domain, int64_t version) {
  Onnx__OperatorSetIdProto *set =
      BUILD_NEW(b, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  set->domain = build_text(b, domain);
  set->has_version = 1;
  set->version = version;
  PUSH(b, b->model, opset_import, set);
}

static UNUSED void build_init(build *b) {
  *b = (build){0};
  b->model = BUILD_NEW(b, Onnx__ModelProto, ONNX__MODEL_PROTO__INIT);
  b->graph = BUILD_NEW(b, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
  b->model->has_ir_version = 1;
  b->model->ir_version = 8;
  b->model->graph = b->graph;
  build_opset(b, "", 17);
}

static UNUSED void build_clear(build *b) { laci_arena_clear(&b->arena); }

static UNUSED Onnx__GraphProto *build_graph(build *b) {
  return BUILD_NEW(b, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
}

/** dims: "3 N ?": a number, a name or nothing; NULL: no shape. */
static UNUSED Onnx__ValueInfoProto *build_info(build *b, const char *name, int dtype,
                                               const char *dims) {
  Onnx__ValueInfoProto *info = BUILD_NEW(b, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
  info->name = build_text(b, name);
  info->type = BUILD_NEW(b, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  Onnx__TypeProto__Tensor *t = info->type->tensor_type =
      BUILD_NEW(b, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  t->has_elem_type = 1;
  t->elem_type = dtype;
  if (!dims) return info;
  t->shape = BUILD_NEW(b, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  char *text = laci_arena_text(&b->arena, dims);
  for (char *part = strtok(text, " "); part; part = strtok(NULL, " ")) {
    Onnx__TensorShapeProto__Dimension *dim =
        BUILD_NEW(b, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    char *end;
    long long size = strtoll(part, &end, 10);
    if (*end == '\0') {
      dim->has_dim_value = 1;
      dim->dim_value = size;
    } else if (strcmp(part, "?") != 0) {
      dim->dim_param = part;
    }
    PUSH(b, t->shape, dim, dim);
  }
  return info;
}

static UNUSED void build_input(build *b, const char *name, const char *dims) {
  PUSH(b, b->graph, input, build_info(b, name, LAC_DTYPE_F32, dims));
}

static UNUSED void build_output(build *b, const char *name) {
  PUSH(b, b->graph, output, build_info(b, name, LAC_DTYPE_F32, NULL));
}

/** Names separated by blanks; "-" is the empty name. */
static UNUSED void build_names(build *b, char ***list, size_t *n, const char *names) {
  char *text = laci_arena_text(&b->arena, names);
  for (char *part = strtok(text, " "); part; part = strtok(NULL, " ")) {
    char *name = strcmp(part, "-") == 0 ? (char *)"" : part;
    build_push(b, list, n, &name, sizeof name);
  }
}

static UNUSED Onnx__NodeProto *build_node_of(build *b, const char *type, const char *inputs,
                                             const char *outputs) {
  Onnx__NodeProto *node = BUILD_NEW(b, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
  node->op_type = build_text(b, type);
  build_names(b, &node->input, &node->n_input, inputs);
  build_names(b, &node->output, &node->n_output, outputs);
  return node;
}

static UNUSED Onnx__NodeProto *build_node(build *b, Onnx__GraphProto *graph, const char *type,
                                          const char *inputs, const char *outputs) {
  Onnx__NodeProto *node = build_node_of(b, type, inputs, outputs);
  PUSH(b, graph, node, node);
  return node;
}

static UNUSED Onnx__AttributeProto *build_attr(build *b, Onnx__NodeProto *node, const char *name,
                                               int type) {
  Onnx__AttributeProto *attr = BUILD_NEW(b, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
  attr->name = build_text(b, name);
  attr->has_type = type != 0;
  attr->type = (Onnx__AttributeProto__AttributeType)type;
  if (node) PUSH(b, node, attribute, attr);
  return attr;
}

static UNUSED Onnx__TensorProto *build_tensor_shape(build *b, const char *name, int dtype, int rank,
                                                    const int64_t *dims) {
  Onnx__TensorProto *t = BUILD_NEW(b, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
  t->name = build_text(b, name);
  t->has_data_type = 1;
  t->data_type = dtype;
  for (int at = 0; at < rank; at++) PUSH(b, t, dims, dims[at]);
  return t;
}

/** A tensor of raw bytes, which are copied. */
static UNUSED Onnx__TensorProto *build_raw(build *b, const char *name, int dtype, int64_t n,
                                           const void *bytes, size_t size_bytes) {
  Onnx__TensorProto *t = build_tensor_shape(b, name, dtype, 1, &n);
  t->has_raw_data = 1;
  t->raw_data.len = size_bytes;
  t->raw_data.data = build_alloc(b, size_bytes + 1, 1);
  if (size_bytes) memcpy(t->raw_data.data, bytes, size_bytes);
  return t;
}

static UNUSED Onnx__TensorProto *build_external(build *b, const char *name, int64_t n,
                                                const char *location, const char *offset,
                                                const char *length) {
  const char *entries[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
  Onnx__TensorProto *t = build_tensor_shape(b, name, LAC_DTYPE_F32, 1, &n);
  t->has_data_location = 1;
  t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  for (int at = 0; at < 3; at++) {
    if (!entries[at][1]) continue;
    Onnx__StringStringEntryProto *e =
        BUILD_NEW(b, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
    e->key = build_text(b, entries[at][0]);
    e->value = build_text(b, entries[at][1]);
    PUSH(b, t, external_data, e);
  }
  return t;
}

static UNUSED uint8_t *build_bytes(build *b, size_t *n) {
  *n = onnx__model_proto__get_packed_size(b->model);
  uint8_t *bytes = build_alloc(b, *n + 1, 1);
  assert_int_equal(onnx__model_proto__pack(b->model, bytes), *n);
  return bytes;
}

/** A loaded model with its error, for both outcomes. */
typedef struct loaded {
  laci_onnx *file;
  laci_graph *graph;
  lac_status status;
  lac_error err;
} loaded;

static UNUSED loaded build_load(build *b) {
  loaded l = {0};
  size_t n;
  uint8_t *bytes = build_bytes(b, &n);
  l.status = laci_onnx_load_memory(bytes, n, NULL, &l.file, &l.graph, &l.err);
  return l;
}

static UNUSED void loaded_clear(loaded *l) {
  laci_graph_destroy(l->graph);
  laci_onnx_destroy(l->file);
  *l = (loaded){0};
}

#define assert_loaded(l)                                       \
  do {                                                         \
    if ((l).status) fail_msg("load failed: %s", (l).err.text); \
  } while (0)

/** Loading fails with that status and a text that has `words` in it. */
#define assert_refused(l, wanted, words)                                                     \
  do {                                                                                       \
    if ((l).status != (wanted) || !strstr((l).err.text, (words)) || (l).file || (l).graph) { \
      fail_msg("got status %d '%s', want %d with '%s'", (l).status, (l).err.text, (wanted),  \
               (words));                                                                     \
    }                                                                                        \
  } while (0)

static UNUSED laci_stored *find_stored(const laci_graph *graph, const char *name) {
  for (int at = 0; at < graph->n_stored; at++) {
    if (strcmp(graph->stored[at].name, name) == 0) return &graph->stored[at];
  }
  fail_msg("no stored tensor '%s'", name);
  return NULL;
}

static UNUSED const laci_node *find_node(const laci_graph *graph, const char *name) {
  for (int at = 0; at < graph->n_nodes; at++) {
    if (strcmp(graph->nodes[at].name, name) == 0) return &graph->nodes[at];
  }
  fail_msg("no node '%s'", name);
  return NULL;
}

static UNUSED const char *value_name(const laci_graph *graph, int value) {
  return value < 0 ? "-" : graph->values[value].name;
}

/* ---- A folder for the files of a test ---- */

typedef struct folder {
  char path[64];
} folder;

static UNUSED void folder_make(folder *f) {
  *f = (folder){.path = "/tmp/lacuna-test-XXXXXX"};
  assert_non_null(mkdtemp(f->path));
}

/** The path of a name in the folder; good for the next seven calls. */
static UNUSED const char *in_folder(const folder *f, const char *name) {
  static char texts[8][256];
  static int next;
  char *text = texts[next++ % 8];
  (void)snprintf(text, sizeof texts[0], "%s/%s", f->path, name);
  return text;
}

static UNUSED void folder_remove(folder *f) {
  char command[96];
  (void)snprintf(command, sizeof command, "rm -rf %s", f->path);
  assert_int_equal(system(command), 0);
}

static UNUSED void write_bytes(const char *path, const void *bytes, size_t n) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, n, out), n);
  assert_int_equal(fclose(out), 0);
}

/** The file's bytes (laci_free). */
static UNUSED uint8_t *read_bytes(const char *path, size_t *n) {
  FILE *in = fopen(path, "rb");
  if (!in) fail_msg("cannot open %s", path);
  assert_int_equal(fseek(in, 0, SEEK_END), 0);
  *n = (size_t)ftell(in);
  rewind(in);
  uint8_t *bytes = laci_alloc(*n + 1, 1);
  assert_int_equal(fread(bytes, 1, *n, in), *n);
  assert_int_equal(fclose(in), 0);
  return bytes;
}

/** Number of files in a folder. */
static UNUSED int count_files(folder *f) {
  char command[96];
  int n = -1;
  (void)snprintf(command, sizeof command, "ls -A %s | wc -l", f->path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  assert_int_equal(fscanf(pipe, "%d", &n), 1);
  (void)pclose(pipe);
  return n;
}

/** With its stored bytes where they are said to be. */
static UNUSED loaded load_path(const char *path) {
  loaded l = {0};
  l.status = laci_onnx_load(path, &l.file, &l.graph, &l.err);
  if (!l.status) l.status = laci_onnx_materialise(l.file, &l.err);
  return l;
}

static UNUSED void build_save(build *b, const char *path) {
  size_t n;
  uint8_t *bytes = build_bytes(b, &n);
  write_bytes(path, bytes, n);
}

#endif
