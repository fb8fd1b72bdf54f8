/* SPDX-License-Identifier: Apache-2.0
 * Imports the decoded file as a graph: inputs, outputs, declared types and initializers, then the
 * nodes, one by one.
 *
 * All names of the main graph get their values first. So names that inlining makes up never collide
 * with them. Next: node.c, function.c, body.c. */
#include "onnx/import_in.h"
#include "onnx/metadata_in.h"

#include "base/error.h"
#include "base/file.h"
#include "base/reader.h"
#include "graph/graph.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
  MIN_IR = 3,
  MAX_IR = 14,
};

static const int64_t inlining_bytes = INT64_C(1) << 28;

/* ---- Versions ---- */

static lac_status check_versions(const Onnx__ModelProto *model, lac_error *err) {
  if (model->ir_version < MIN_IR || model->ir_version > MAX_IR) {
    return laci_fail(err, LAC_UNSUPPORTED, "IR version %" PRId64 "; %d to %d are supported",
                     model->ir_version, MIN_IR, MAX_IR);
  }
  return laci_import_check_opsets(model->opset_import, model->n_opset_import, err);
}

/* ---- Inputs, outputs, initializers ---- */

static lac_status declare_type_of_value(laci_importer *im, const Onnx__ValueInfoProto *info,
                                        lac_error *err) {
  int value = laci_graph_find_value(im->graph, laci_onnx_text_or_empty(info->name));
  return value < 0 ? LAC_OK : laci_import_declare_type(im, value, info, false, err);
}

static lac_status create_values_of_nodes(laci_importer *im, const Onnx__GraphProto *graph,
                                         lac_error *err) {
  for (size_t at = 0; at < graph->n_node; at++) {
    const Onnx__NodeProto *node = graph->node[at];
    for (size_t out = 0; out < node->n_output; out++) {
      if (!node->output[out][0]) continue;
      if (laci_graph_intern_value(im->graph, node->output[out]) < 0) {
        return laci_fail_memory(err, "the values");
      }
    }
  }
  return LAC_OK;
}

static lac_status add_initializer(laci_importer *im, Onnx__TensorProto *tensor, lac_error *err) {
  const laci_stored about = {.name = laci_onnx_text_or_empty(tensor->name)};
  if (!about.name[0]) return laci_fail(err, LAC_BAD_FILE, "an initializer without a name");
  return laci_import_add_initializer(im, tensor, &about, err);
}

/** Adds a sparse initializer. It becomes the output of an operator that the graph has no rules
 * for. */
static lac_status add_sparse_initializer(laci_importer *im, const Onnx__SparseTensorProto *sparse,
                                         lac_error *err) {
  const char *name = sparse->values ? laci_onnx_text_or_empty(sparse->values->name) : "";
  int id;
  if (!name[0]) return laci_fail(err, LAC_BAD_FILE, "a sparse initializer without a name");
  int value = laci_graph_intern_value(im->graph, name);
  if (value < 0) return laci_fail_memory(err, name);
  laci_node node = {.name = name, .type = "SparseInitializer", .domain = "", .n_outputs = 1};
  node.outputs = &value;
  return laci_graph_add_node(im->graph, &node, &id, err);
}

static lac_status add_input(laci_importer *im, const Onnx__ValueInfoProto *info, lac_error *err) {
  const char *name = laci_onnx_text_or_empty(info->name);
  if (!name[0]) return laci_fail(err, LAC_BAD_FILE, "a graph input without a name");
  laci_graph *graph = im->graph;
  int value = laci_graph_find_value(graph, name);
  if (value >= 0 && graph->values[value].stored >= 0) {
    laci_stored *stored = &graph->stored[graph->values[value].stored];
    stored->overridable = graph->ir_version >= LACI_FIRST_IR_WITH_DEFAULTS;
    return LAC_OK;
  }
  if (value >= 0 && graph->values[value].producer >= 0)
    return LAC_OK; /* the value is a sparse
                                                                          initializer */
  laci_type type;
  lac_status st = laci_import_convert_type(im, info, &type, err);
  return st ? st : laci_graph_add_input(graph, name, &type, err);
}

static lac_status add_output(laci_importer *im, const Onnx__ValueInfoProto *info, lac_error *err) {
  const char *name = laci_onnx_text_or_empty(info->name);
  if (!name[0]) return laci_fail(err, LAC_BAD_FILE, "a graph output without a name");
  lac_status st = laci_graph_add_output(im->graph, name, err);
  return st ? st : declare_type_of_value(im, info, err);
}

static lac_status import_main_graph(laci_importer *im, Onnx__GraphProto *proto, lac_error *err) {
  const laci_scope main_graph = {.prefix = ""};
  lac_status st = create_values_of_nodes(im, proto, err);
  for (size_t at = 0; at < proto->n_initializer && !st; at++) {
    st = add_initializer(im, proto->initializer[at], err);
  }
  for (size_t at = 0; at < proto->n_sparse_initializer && !st; at++) {
    st = add_sparse_initializer(im, proto->sparse_initializer[at], err);
  }
  for (size_t at = 0; at < proto->n_input && !st; at++) st = add_input(im, proto->input[at], err);
  for (size_t at = 0; at < proto->n_node && !st; at++) {
    st = laci_import_any_node(im, &main_graph, proto->node[at], err);
  }
  for (size_t at = 0; at < proto->n_value_info && !st; at++) {
    st = declare_type_of_value(im, proto->value_info[at], err);
  }
  if (!st && proto->n_output == 0) st = laci_fail(err, LAC_BAD_FILE, "the graph has no outputs");
  for (size_t at = 0; at < proto->n_output && !st; at++) {
    st = add_output(im, proto->output[at], err);
  }
  return st ? st : laci_graph_finish(im->graph, err);
}

lac_status laci_onnx_import(laci_onnx *file, laci_graph **graph, lac_error *err) {
  laci_importer im = {.file = file, .add_node = laci_import_any_node, .budget = inlining_bytes};
  lac_status st = check_versions(file->model, err);
  if (!st) st = laci_graph_create(&im.graph, err);
  if (!st) im.graph->ir_version = (int)file->model->ir_version;
  if (!st) st = laci_import_read_class_names(file->model, im.graph, err);
  if (!st) {
    file->bytes_from = laci_onnx_byte_source(file);
    im.graph->bytes_from = &file->bytes_from;
  }
  if (!st) st = laci_import_list_functions(&im, err);
  if (!st) st = import_main_graph(&im, file->model->graph, err);
  if (!st) laci_import_mark_externally_named_values(&im);
  for (size_t at = 0; at < im.n_functions; at++) laci_name_table_clear(&im.functions[at].constants);
  laci_free(im.functions);
  laci_name_table_clear(&im.function_ids);
  laci_name_table_clear(&im.symbols);
  laci_name_table_clear(&im.shared);
  laci_arena_clear(&im.scratch);
  if (st) laci_graph_destroy(im.graph);
  else *graph = im.graph;
  return st;
}

/* ---- Loading ---- */

/** Stores the path of the data folder, with links resolved. If the folder does not exist, this
 * fails only later, when data is needed. */
static lac_status store_data_folder(laci_onnx *file, const char *folder, lac_error *err) {
  char *resolved = realpath(folder, NULL);
  if (!resolved) return LAC_OK;
  file->data_dir = laci_arena_text(&file->arena, resolved);
  free(resolved);
  return file->data_dir ? LAC_OK : laci_fail_memory(err, "the model's folder");
}

static lac_status store_folder_of_path(laci_onnx *file, const char *path, lac_error *err) {
  size_t n = laci_path_folder_length(path);
  char *folder = n ? laci_arena_text_n(&file->arena, path, n) : laci_arena_text(&file->arena, ".");
  if (!folder) return laci_fail_memory(err, "the model's folder");
  return store_data_folder(file, folder, err);
}

/** Decodes and imports the model of `file`, whose reader and folder are set already. */
static lac_status decode_and_import(laci_onnx *file, laci_graph **graph, lac_error *err) {
  lac_status st = laci_onnx_decode_file(file, err);
  if (!st) st = laci_onnx_open_data_files(file, err);
  if (!st) st = laci_onnx_import(file, graph, err);
  laci_reader_release_loaded(file->reader);
  return st;
}

/** Replaces line breaks in an error's text, which may quote names from the file. */
static void replace_line_breaks(lac_error *err) {
  for (char *c = err ? err->text : NULL; c && *c; c++) {
    if ((unsigned char)*c < ' ') *c = '?';
  }
}

/** If st is LAC_OK, sets *file to the loaded file. Otherwise destroys it. Returns st. */
static lac_status return_or_destroy_file(laci_onnx *made, lac_status st, laci_onnx **file,
                                         lac_error *err) {
  if (!st) {
    *file = made;
    return LAC_OK;
  }
  replace_line_breaks(err);
  laci_onnx_destroy(made);
  return st;
}

lac_status laci_onnx_load(const char *path, laci_onnx **file, laci_graph **graph, lac_error *err) {
  *file = NULL;
  *graph = NULL;
  laci_onnx *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, path);
  lac_status st = laci_reader_open(path, &made->reader, err);
  if (!st) st = store_folder_of_path(made, path, err);
  if (!st) st = decode_and_import(made, graph, err);
  if (st) st = laci_fail_with_prefix(err, st, "%s", path);
  return return_or_destroy_file(made, st, file, err);
}

lac_status laci_onnx_load_readers(laci_reader *model, const laci_onnx_outside *data,
                                  laci_onnx **file, laci_graph **graph, lac_error *err) {
  *file = NULL;
  *graph = NULL;
  laci_onnx *made = laci_alloc(1, sizeof *made);
  if (!made) {
    laci_reader_close(model);
    return laci_fail_memory(err, "the model");
  }
  *made = (laci_onnx){.reader = model,
                      .open_data = data->folder ? NULL : data->open,
                      .data_context = data->context};
  lac_status st = data->folder ? store_data_folder(made, data->folder, err) : LAC_OK;
  if (!st) st = decode_and_import(made, graph, err);
  return return_or_destroy_file(made, st, file, err);
}

lac_status laci_onnx_load_memory(const void *bytes, size_t size_bytes, const char *data_dir,
                                 laci_onnx **file, laci_graph **graph, lac_error *err) {
  const laci_onnx_outside data = {.folder = data_dir};
  laci_reader *reader;
  *file = NULL;
  *graph = NULL;
  lac_status st = laci_reader_open_memory("the model", bytes, size_bytes, &reader, err);
  return st ? st : laci_onnx_load_readers(reader, &data, file, graph, err);
}

void laci_onnx_destroy(laci_onnx *file) {
  if (!file) return;
  for (size_t at = 0; at < file->n_data_files; at++) laci_reader_close(file->data_files[at].reader);
  laci_free(file->data_files);
  laci_free(file->externals);
  laci_onnx_close_reader(file);
  laci_onnx_free_model(file->model);
  laci_arena_clear(&file->arena);
  laci_free(file);
}

lac_status laci_onnx_reimport(laci_onnx *file, laci_graph **graph, lac_error *err) {
  return laci_onnx_import(file, graph, err);
}
