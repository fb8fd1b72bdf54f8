/* SPDX-License-Identifier: Apache-2.0
 * Copies the network's tensors one after the other from a file of either format, through a small
 * common interface: find a name, copy its elements. */
#include "lacuna/pretrained.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/model/tensor_file_in.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/torch_file.h"
#include "graph/graph.h"
#include "safetensors/safetensors.h"
#include "tensor/buf.h"

/** The file: a safetensors file, one of PyTorch, or a model. */
typedef struct weights_file {
  const char *path;
  laci_safetensors *tensors;
  lac_model *model;
  const char *prefix; /* prefix that all names in the file have: "module.", or "" */
} weights_file;

/** A tensor of the file. */
typedef struct weights_tensor {
  const laci_safetensor *of; /* NULL: the tensor is of the model */
  lac_tensor view;
  int rank;
  int64_t shape[8];
} weights_tensor;

/* ---- Access to safetensors files and models alike ---- */

static int count_tensors(const weights_file *f) {
  int n = 0;
  if (f->tensors) (void)laci_safetensors_list_tensors(f->tensors, &n);
  else n = lac_model_tensor_count(f->model);
  return n;
}

static const char *get_tensor_name(const weights_file *f, int k) {
  int n;
  lac_tensor view = LAC_SIZED(lac_tensor);
  if (f->tensors) return laci_safetensors_list_tensors(f->tensors, &n)[k].name;
  return lac_model_tensor(f->model, k, &view, NULL) ? NULL : view.name;
}

static bool find_tensor(const weights_file *f, const char *name, weights_tensor *t) {
  *t = (weights_tensor){.view = LAC_SIZED(lac_tensor)};
  if (f->tensors) {
    t->of = laci_safetensors_find_tensor(f->tensors, name);
    if (!t->of) return false;
    t->rank = t->of->rank;
    memcpy(t->shape, t->of->shape, sizeof t->shape);
    return true;
  }
  if (lac_model_find_tensor(f->model, name, &t->view, NULL)) return false;
  t->rank = t->view.rank;
  memcpy(t->shape, t->view.shape, sizeof t->shape);
  return true;
}

static lac_status copy_floats(const weights_file *f, const weights_tensor *t, int64_t count,
                              float *to, lac_error *err) {
  if (t->of) return laci_safetensors_read_floats(f->tensors, t->of, to, err);
  laci_read_f32(t->view.dtype, t->view.bytes, 0, count, to);
  return LAC_OK;
}

/* ---- Names ---- */

static bool has_prefix(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/** Translates a name of the file to the network's name. */
static void translate_to_network_name(const weights_file *f, const char *name, char ours[256]) {
  const char *rest = name + strlen(f->prefix);
  bool is_linear = has_prefix(rest, "linear.");
  (void)snprintf(ours, 256, "%s%s", is_linear ? "fc." : "", is_linear ? rest + 7 : rest);
}

static bool find_tensor_by_network_name(const weights_file *f, const char *name,
                                        weights_tensor *t) {
  char theirs[256];
  (void)snprintf(theirs, sizeof theirs, "%s%s", f->prefix, name);
  if (find_tensor(f, theirs, t)) return true;
  if (!has_prefix(name, "fc.")) return false;
  (void)snprintf(theirs, sizeof theirs, "%slinear.%s", f->prefix, name + 3);
  return find_tensor(f, theirs, t);
}

static void find_name_prefix(weights_file *f) {
  static const char module[] = "module."; /* prefix that PyTorch's DataParallel adds */
  int n = count_tensors(f);
  f->prefix = n > 0 ? module : "";
  for (int k = 0; k < n; k++) {
    if (!has_prefix(get_tensor_name(f, k), module)) f->prefix = "";
  }
}

static void count_unknown_tensors(const weights_file *f, const laci_graph *graph,
                                  lac_pretrained *found) {
  for (int k = count_tensors(f) - 1; k >= 0; k--) {
    char ours[256];
    const char *name = get_tensor_name(f, k);
    bool is_known = laci_ends_with(name, ".num_batches_tracked");
    translate_to_network_name(f, name, ours);
    for (int s = 0; s < graph->n_stored && !is_known; s++) {
      is_known = strcmp(graph->stored[s].name, ours) == 0;
    }
    if (is_known) continue;
    found->n_unknown++;
    (void)snprintf(found->unknown, sizeof found->unknown, "%s", name);
  }
}

/* ---- Copying tensors ---- */

/** Returns the file's number of classes if the tensors differ only in that number; else 0. */
static int64_t find_other_class_count(const laci_stored *s, const weights_tensor *t) {
  bool is_classifier = has_prefix(s->name, "fc.") && t->rank == s->shape.rank && t->rank > 0 &&
                       t->shape[0] != s->shape.dims[0];
  for (int axis = 1; axis < t->rank && is_classifier; axis++) {
    is_classifier = t->shape[axis] == s->shape.dims[axis];
  }
  return is_classifier ? t->shape[0] : 0;
}

static lac_status check_shape(const weights_file *f, const laci_stored *s, const weights_tensor *t,
                              lac_error *err) {
  laci_shape shape = {.rank = t->rank};
  char text[2][128];
  memcpy(shape.dims, t->shape, sizeof t->shape);
  if (laci_shape_equal(&shape, &s->shape)) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s: %s is %s, wanted %s", f->path, s->name,
                   laci_shape_text(&shape, text[0], sizeof text[0]),
                   laci_shape_text(&s->shape, text[1], sizeof text[1]));
}

static lac_status check_type(const weights_file *f, const laci_stored *s, const weights_tensor *t,
                             lac_error *err) {
  bool is_float = t->of ? t->of->is_float : laci_dtype_is_float(t->view.dtype);
  if (is_float) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s: %s is of type %s, wanted F32, F16, BF16 or F64",
                   f->path, s->name, t->of ? t->of->type : lac_dtype_name(t->view.dtype));
}

/** Does the file have a tensor whose name contains this? */
static bool has_name_containing(const weights_file *f, const char *part) {
  for (int k = count_tensors(f) - 1; k >= 0; k--) {
    if (strstr(get_tensor_name(f, k), part)) return true;
  }
  return false;
}

static lac_status fail_missing(const weights_file *f, const laci_stored *s, lac_error *err) {
  if (has_name_containing(f, "weight") && !has_name_containing(f, ".running_")) {
    return laci_fail(
        err, LAC_BAD_FILE,
        "%s: it has no statistics of batch normalization, which the network needs (%s): "
        "its exporter folded them into the convolutions; wanted an export that keeps "
        "them (of PyTorch: do_constant_folding=False, training=PRESERVE), or its "
        "state_dict as .safetensors",
        f->path, s->name);
  }
  return laci_fail(err, LAC_BAD_FILE, "%s: it has no tensor %s, which the network needs", f->path,
                   s->name);
}

/** Checks that file and network have the same kind of shortcuts: those of a ResNet for small images
 * may be convolutions or padded channels. */
static lac_status check_shortcuts(const weights_file *f, const laci_graph *graph, lac_error *err) {
  static const char *const parts[] = {".downsample.", ".shortcut."};
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    bool is_ours = false;
    for (int s = 0; s < graph->n_stored && !is_ours; s++)
      is_ours = strstr(graph->stored[s].name, ".downsample.") != NULL;
    if (is_ours || !has_name_containing(f, parts[k])) continue;
    return laci_hint(
        err, LAC_HINT_SHORTCUT,
        laci_fail(err, LAC_BAD_FILE,
                  "%s: its shortcuts are convolutions (NAME%sNAME), those of the network "
                  "pad channels",
                  f->path, parts[k]));
  }
  return LAC_OK;
}

static lac_status copy_tensor(const weights_file *f, laci_stored *s, lac_pretrained *found,
                              lac_error *err) {
  weights_tensor t;
  if (!find_tensor_by_network_name(f, s->name, &t)) return fail_missing(f, s, err);
  int64_t classes = find_other_class_count(s, &t);
  if (classes > 0) {
    found->fresh_classifier = true;
    found->classes = classes;
    return LAC_OK;
  }
  lac_status st = check_shape(f, s, &t, err);
  if (!st) st = check_type(f, s, &t, err);
  if (st) return st;
  int64_t count = (int64_t)(s->size_bytes / lac_dtype_size(s->dtype));
  float *numbers = laci_alloc((size_t)count, sizeof *numbers);
  uint8_t *bytes = numbers ? laci_stored_writable_bytes(s) : NULL;
  st = bytes ? copy_floats(f, &t, count, numbers, err) : laci_fail_memory(err, s->name);
  if (!st) laci_write_f32(s->dtype, numbers, count, bytes);
  laci_free(numbers);
  found->n_taken += st == LAC_OK;
  return st;
}

static lac_status copy_all_tensors(weights_file *f, lac_model *model, lac_pretrained *found,
                                   lac_error *err) {
  lac_status st = laci_model_materialise(model, err);
  find_name_prefix(f);
  if (!st) st = check_shortcuts(f, model->graph, err);
  for (int s = 0; s < model->graph->n_stored && !st; s++) {
    const laci_stored *stored = &model->graph->stored[s];
    if (!laci_dtype_is_float(stored->dtype)) continue; /* shapes and the like are no weights */
    st = copy_tensor(f, &model->graph->stored[s], found, err);
  }
  if (!st) count_unknown_tensors(f, model->graph, found);
  return st;
}

/* ---- The file ---- */

static lac_status open_file(const char *path, weights_file *f, lac_error *err) {
  laci_tensor_file_signs signs;
  lac_status st = laci_tensor_file_detect_format(path, &signs, err);
  if (st) return st;
  f->path = path;
  if (signs.torch_name || signs.torch_head) return laci_torch_file_open(path, &f->tensors, err);
  if (signs.safetensors) return laci_safetensors_open(path, &f->tensors, err);
  st = lac_model_load(path, NULL, &f->model, err);
  return st ? st : laci_model_materialise(f->model, err);
}

lac_status lac_pretrained_read(lac_model *model, const char *path, lac_context *context,
                               lac_pretrained *found, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"path", path}, {"found", found});
  if (!st) st = laci_check_struct_pretrained(found, err);
  if (st) return st;
  weights_file f = {0};
  lac_pretrained read = LAC_SIZED(lac_pretrained);
  lac_context *before = laci_call_enter_context(context);
  st = open_file(path, &f, err);
  if (!st) st = copy_all_tensors(&f, model, &read, err);
  laci_call_leave_context(before);
  laci_give_pretrained(&read, found);
  laci_safetensors_close(f.tensors);
  lac_model_destroy(f.model);
  return st;
}
