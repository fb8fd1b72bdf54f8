/* SPDX-License-Identifier: Apache-2.0
 * Opens external data: tensors whose bytes are in data files, in the model's folder.
 *
 * A model is not trusted. A location must be a relative path, and the file it leads to, with links
 * resolved, must be in the model's folder. Offsets and lengths must be within the file. Data files
 * are opened here, but not read yet. Next: source.c reads them, export.c writes them again. */
#include "onnx/onnx_in.h"

#include "base/error.h"
#include "base/reader.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_OPEN = 16
}; /* maximum number of data files that are open at once, since a process has few descriptors */

/** The entries of a TensorProto's external_data, which say where its bytes are. NULL: there is no
 * such entry. */
typedef struct claim {
  const char *location, *offset, *length;
} claim;

static claim read_external_entries(const Onnx__TensorProto *tensor) {
  claim c = {0};
  for (size_t at = 0; at < tensor->n_external_data; at++) {
    const char *key = laci_onnx_text_or_empty(tensor->external_data[at]->key);
    const char *value = laci_onnx_text_or_empty(tensor->external_data[at]->value);
    if (strcmp(key, "location") == 0) c.location = value;
    if (strcmp(key, "offset") == 0) c.offset = value;
    if (strcmp(key, "length") == 0) c.length = value;
  }
  return c;
}

/** Parses a text that must be a decimal number without anything after it. */
static bool parse_number(const char *text, uint64_t *number) {
  *number = 0;
  for (const char *c = text; *c; c++) {
    if (*c < '0' || *c > '9') return false;
    if (__builtin_mul_overflow(*number, UINT64_C(10), number) ||
        __builtin_add_overflow(*number, (uint64_t)(*c - '0'), number)) {
      return false;
    }
  }
  return *text != '\0';
}

static bool has_parent_folder_step(const char *path) {
  for (const char *part = path; part; part = strchr(part, '/'), part = part ? part + 1 : NULL) {
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return true;
  }
  return false;
}

/** Finds the file that a location leads to: path, with links resolved. Fails if it is not in the
 * model's folder. */
static lac_status resolve_location(const laci_onnx *file, const char *name, const char *location,
                                   char path[PATH_MAX], lac_error *err) {
  if (!file->data_dir) {
    return laci_fail(err, LAC_BAD_FILE,
                     "tensor '%s': external data '%s', but the model came without a folder", name,
                     location);
  }
  size_t n_dir = strlen(file->data_dir), n_location = strlen(location);
  char *joined = laci_alloc(n_dir + n_location + 2, 1);
  if (!joined) return laci_fail_memory(err, location);
  memcpy(joined, file->data_dir, n_dir);
  joined[n_dir] = '/';
  memcpy(joined + n_dir + 1, location, n_location);
  char *resolved = realpath(joined, path);
  laci_free(joined);
  if (!resolved) {
    return laci_fail(err, LAC_NOT_FOUND, "tensor '%s': cannot find external data '%s' in %s", name,
                     location, file->data_dir);
  }
  bool is_root = strcmp(file->data_dir, "/") == 0;
  if (!is_root && (strncmp(path, file->data_dir, n_dir) != 0 || path[n_dir] != '/')) {
    return laci_fail(err, LAC_BAD_FILE,
                     "tensor '%s': external data '%s' leads out of the model's folder", name,
                     location);
  }
  return LAC_OK;
}

static lac_status open_data_reader(const laci_onnx *file, const char *name, const char *location,
                                   laci_reader **reader, lac_error *err) {
  char path[PATH_MAX];
  lac_status st;
  bool has_place = file->open_data || file->data_dir;
  if (has_place &&
      (location[0] == '\0' || location[0] == '/' || has_parent_folder_step(location))) {
    return laci_fail(err, LAC_BAD_FILE,
                     "tensor '%s': external data '%s' is not in the model's folder", name,
                     location);
  }
  if (file->open_data) {
    st = file->open_data(file->data_context, location, reader, err);
  } else {
    st = resolve_location(file, name, location, path, err);
    if (st) return st; /* the error's text names the tensor already */
    st = laci_reader_open(path, reader, err);
  }
  return st ? laci_fail_with_prefix(err, st, "tensor '%s'", name) : st;
}

/** Sets *id to the index of a data file, which is opened unless it is open already. Most models
 * have one data file; some have one for each tensor, in order. */
static lac_status open_data_file(laci_onnx *file, const char *name, const char *location, int *id,
                                 lac_error *err) {
  for (size_t at = file->n_data_files; at-- > 0;) {
    if (strcmp(file->data_files[at].location, location) != 0) continue;
    *id = (int)at;
    return LAC_OK;
  }
  void *array = file->data_files;
  if (!laci_grow(&array, file->n_data_files, &file->data_file_capacity, sizeof *file->data_files)) {
    return laci_fail_memory(err, location);
  }
  file->data_files = array;
  laci_data_file *added = &file->data_files[file->n_data_files];
  *added = (laci_data_file){.location = location};
  lac_status st = open_data_reader(file, name, location, &added->reader, err);
  if (st) return st;
  if (file->n_data_files >= MOST_OPEN) laci_reader_close_descriptor(added->reader);
  *id = (int)file->n_data_files++;
  return LAC_OK;
}

/** Computes the number of bytes that the tensor's dims require. *is_known becomes false if the
 * element type has no fixed size. */
static lac_status count_required_bytes(const Onnx__TensorProto *tensor, const char *name,
                                       uint64_t *wanted, bool *is_known, lac_error *err) {
  int64_t count;
  bool in_list = tensor->data_type > 0 && tensor->data_type < LAC_DTYPE_COUNT;
  lac_dtype dtype = in_list ? (lac_dtype)tensor->data_type : LAC_DTYPE_NONE;
  *is_known = lac_dtype_size(dtype) != 0;
  *wanted = 0;
  lac_status st = laci_onnx_count_elements(tensor, name, &count, err);
  if (st) return st;
  if (!laci_onnx_count_packed_bytes(dtype, count, wanted)) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': its dims overflow 64 bits", name);
  }
  return LAC_OK;
}

static lac_status check_range_in_data_file(const laci_data_file *data, const char *name,
                                           const claim *c, laci_external *external,
                                           lac_error *err) {
  uint64_t wanted, size = laci_reader_size(data->reader);
  bool is_known;
  if ((c->offset && !parse_number(c->offset, &external->offset)) ||
      (c->length && !parse_number(c->length, &external->length))) {
    return laci_fail(err, LAC_BAD_FILE,
                     "tensor '%s': offset '%s' and length '%s' of its external data: not numbers",
                     name, laci_onnx_text_or_empty(c->offset), laci_onnx_text_or_empty(c->length));
  }
  lac_status st = count_required_bytes(external->tensor, name, &wanted, &is_known, err);
  if (st) return st;
  if (!c->length) {
    uint64_t rest = external->offset < size ? size - external->offset : 0;
    external->length = is_known ? wanted : rest;
  }
  if (is_known && external->length != wanted) {
    return laci_fail(err, LAC_BAD_FILE,
                     "tensor '%s': %" PRIu64 " bytes of external data, but its dims want %" PRIu64,
                     name, external->length, wanted);
  }
  if (external->offset > size || external->length > size - external->offset) {
    return laci_fail(err, LAC_BAD_FILE,
                     "tensor '%s': %" PRIu64 " bytes at %" PRIu64
                     " of external data '%s', which has %" PRIu64,
                     name, external->length, external->offset, data->location, size);
  }
  return LAC_OK;
}

static lac_status add_external_tensor(Onnx__TensorProto *tensor, void *context, lac_error *err) {
  laci_onnx *file = context;
  if (tensor->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) return LAC_OK;
  const char *name = laci_onnx_text_or_empty(tensor->name);
  claim c = read_external_entries(tensor);
  if (!c.location) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': external data without a location", name);
  }
  laci_external external = {.tensor = tensor, .order = file->n_externals};
  lac_status st = open_data_file(file, name, c.location, &external.file, err);
  if (!st)
    st = check_range_in_data_file(&file->data_files[external.file], name, &c, &external, err);
  if (st) return st;
  void *array = file->externals;
  if (!laci_grow(&array, file->n_externals, &file->external_capacity, sizeof *file->externals)) {
    return laci_fail_memory(err, name);
  }
  file->externals = array;
  file->externals[file->n_externals++] = external;
  return LAC_OK;
}

static int compare_tensors(const void *a, const void *b) {
  uintptr_t left = (uintptr_t)((const laci_external *)a)->tensor;
  uintptr_t right = (uintptr_t)((const laci_external *)b)->tensor;
  return (left > right) - (left < right);
}

lac_status laci_onnx_open_data_files(laci_onnx *file, lac_error *err) {
  lac_status st = laci_onnx_visit_tensors(&file->model->base, add_external_tensor, file, err);
  if (!st && file->n_externals) {
    qsort(file->externals, file->n_externals, sizeof *file->externals, compare_tensors);
  }
  return st;
}

static int compare_to_tensor(const void *key, const void *external) {
  uintptr_t left = (uintptr_t)key, right = (uintptr_t)((const laci_external *)external)->tensor;
  return (left > right) - (left < right);
}

laci_external *laci_onnx_find_external(const laci_onnx *file, const Onnx__TensorProto *tensor) {
  if (!file->n_externals) return NULL;
  return bsearch(tensor, file->externals, file->n_externals, sizeof *file->externals,
                 compare_to_tensor);
}
