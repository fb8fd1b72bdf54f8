/* SPDX-License-Identifier: Apache-2.0
 * Constants of a graph: their types and where their elements are. Elements in a data file of the
 * model stay there; those in memory belong to ONNX Runtime, which may release them after it has
 * handed them over. */
#include "weights.h"

#include "lacuna/dtype.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static lac_status add_weight(laci_ort_weights *weights, laci_ort_weight **weight, lac_error *err) {
  if (weights->n == weights->most) {
    int most = weights->most ? 2 * weights->most : 64;
    laci_ort_weight *all = realloc(weights->all, (size_t)most * sizeof *all);
    if (!all) return laci_ort_fail_memory(err);
    weights->all = all;
    weights->most = most;
  }
  *weight = &weights->all[weights->n++];
  memset(*weight, 0, sizeof **weight);
  return LAC_OK;
}

void laci_ort_weights_clear(laci_ort_weights *weights) {
  for (int k = 0; k < weights->n; k++) {
    free(weights->all[k].sizes);
    free(weights->all[k].copy);
    free(weights->all[k].file);
  }
  free(weights->all);
  memset(weights, 0, sizeof *weights);
}

/** Returns the number of bits of a stored element; 0: it has no fixed size. */
static int element_bits(int dtype) {
  switch (dtype) {
    case LAC_DTYPE_U4:
    case LAC_DTYPE_I4:
    case LAC_DTYPE_F4E2M1: return 4;
    case LAC_DTYPE_U2:
    case LAC_DTYPE_I2: return 2;
    default:
      return dtype > 0 && dtype < LAC_DTYPE_COUNT ? 8 * (int)lac_dtype_size((lac_dtype)dtype) : 0;
  }
}

/** Fills type, shape and size from what ONNX Runtime says of the tensor. */
static lac_status fill_shape(laci_ort_weight *weight, const laci_ort *ort, const ort_shape *shape,
                             lac_error *err) {
  size_t rank = 0;
  lac_status st =
      laci_ort_take_failure(ort, ort->element_type(shape, &weight->dtype), "a constant", err);
  if (!st) st = laci_ort_take_failure(ort, ort->rank(shape, &rank), "a constant", err);
  if (st) return st;
  int bits = element_bits(weight->dtype);
  if (!bits)
    return laci_ort_fail(err, LAC_UNSUPPORTED, "a constant's elements are no numbers (type %d)",
                         weight->dtype);
  weight->sizes = calloc(rank + 1, sizeof *weight->sizes);
  if (!weight->sizes) return laci_ort_fail_memory(err);
  if (rank)
    st = laci_ort_take_failure(ort, ort->sizes(shape, weight->sizes, rank), "a constant", err);
  if (st) return st;
  uint64_t n = 1;
  for (size_t k = 0; k < rank; k++) {
    uint64_t size = (uint64_t)weight->sizes[k];
    if (weight->sizes[k] < 0 || (size && n > (uint64_t)INT64_MAX / 128 / size))
      return laci_ort_fail(err, LAC_BAD_SHAPE, "a constant has a size of %lld",
                           (long long)weight->sizes[k]);
    n *= size;
  }
  weight->rank = (int)rank;
  weight->size = (n * (uint64_t)bits + 7) / 8;
  return LAC_OK;
}

static lac_status fill_from_tensor(laci_ort_weight *weight, const laci_ort *ort,
                                   const ort_value *tensor, lac_error *err) {
  ort_shape *shape = NULL;
  void *data = NULL;
  lac_status st = laci_ort_take_failure(ort, ort->tensor_shape(tensor, &shape), "a constant", err);
  if (st) return st;
  st = fill_shape(weight, ort, shape, err);
  ort->release_shape(shape);
  if (!st) st = laci_ort_take_failure(ort, ort->tensor_data(tensor, &data), "a constant", err);
  if (!st && !data && weight->size)
    st = laci_ort_fail(err, LAC_IO, "ONNX Runtime has no elements of a constant");
  weight->bytes = data;
  return st;
}

lac_status laci_ort_weights_add_tensor(laci_ort_weights *weights, const laci_ort *ort,
                                       const ort_value *tensor, bool keep, laci_ort_weight **weight,
                                       lac_error *err) {
  lac_status st = add_weight(weights, weight, err);
  if (!st) st = fill_from_tensor(*weight, ort, tensor, err);
  if (st || !keep || !(*weight)->size) return st;
  (*weight)->copy = malloc((*weight)->size);
  if (!(*weight)->copy) return laci_ort_fail_memory(err);
  memcpy((*weight)->copy, (*weight)->bytes, (*weight)->size);
  (*weight)->bytes = (*weight)->copy;
  weights->copied += (*weight)->size;
  return LAC_OK;
}

/* ---- Data files ---- */

/** Returns the path of a data file: relative to the model's folder, if it is relative. */
static char *resolve_data_path(const char *model, const char *name) {
  const char *slash = strrchr(model, '/');
  size_t n = slash && name[0] != '/' ? (size_t)(slash - model) + 1 : 0;
  char *path = malloc(n + strlen(name) + 1);
  if (!path) return NULL;
  memcpy(path, model, n);
  memcpy(path + n, name, strlen(name) + 1);
  return path;
}

/** Has the file all the bytes that it should have? */
static bool is_file_long_enough(const laci_ort_weight *weight) {
  struct stat info;
  return stat(weight->file, &info) == 0 && S_ISREG(info.st_mode) &&
         weight->offset <= (uint64_t)info.st_size &&
         weight->size <= (uint64_t)info.st_size - weight->offset;
}

/** Fills the weight from a data file. *found false: its elements are in no data file. */
static lac_status fill_from_file(laci_ort_weight *weight, const laci_ort_graph *graph,
                                 const laci_ort_value *value, bool *found, lac_error *err) {
  const laci_ort *ort = graph->ort;
  ort_external *where = NULL;
  const ort_type *type = NULL;
  const ort_shape *shape = NULL;
  *found = false;
  lac_status st = laci_ort_take_failure(ort, ort->external(value->info, &where), value->name, err);
  if (st || !where) return st;
  const char *name = ort->external_path(where);
  uint64_t size = ort->external_size(where);
  int64_t offset = ort->external_offset(where);
  if (name && *name && offset >= 0) {
    weight->file = resolve_data_path(graph->path, name);
    if (!weight->file) st = laci_ort_fail_memory(err);
  }
  ort->release_external(where);
  if (st || !weight->file) return st;
  st = laci_ort_take_failure(ort, ort->value_type(value->info, &type), value->name, err);
  if (!st && type)
    st = laci_ort_take_failure(ort, ort->tensor_of_type(type, &shape), value->name, err);
  if (!st && shape) st = fill_shape(weight, ort, shape, err);
  if (st || !shape) return st;
  weight->offset = (uint64_t)offset;
  *found = size == weight->size && is_file_long_enough(weight);
  return LAC_OK;
}

lac_status laci_ort_weights_add_value(laci_ort_weights *weights, const laci_ort_graph *graph,
                                      const laci_ort_value *value, bool keep,
                                      laci_ort_weight **weight, lac_error *err) {
  const ort_value *tensor = NULL;
  bool found = false;
  lac_status st = add_weight(weights, weight, err);
  if (!st) st = fill_from_file(*weight, graph, value, &found, err);
  if (st || found) return st;
  free((*weight)->file);
  free((*weight)->sizes);
  weights->n--;
  st = laci_ort_take_failure(graph->ort, graph->ort->initializer(value->info, &tensor), value->name,
                             err);
  if (!st && !tensor)
    st = laci_ort_fail(err, LAC_NOT_FOUND, "%s: ONNX Runtime has no elements of it", value->name);
  return st ? st : laci_ort_weights_add_tensor(weights, graph->ort, tensor, keep, weight, err);
}

/* ---- Reading ---- */

void laci_ort_write_weight_name(int at, char *name) {
  (void)snprintf(name, LAC_ORT_NAME_BYTES, "w%d", at);
}

const laci_ort_weight *laci_ort_weights_find(const laci_ort_weights *weights, const char *name) {
  char *end = NULL;
  if (name[0] != 'w') return NULL;
  long at = strtol(name + 1, &end, 10);
  return *end || at < 0 || at >= weights->n ? NULL : &weights->all[at];
}

lac_status laci_ort_weights_read_bytes(const laci_ort_weights *weights, const char *name,
                                       uint64_t offset, void *to, size_t *n, lac_error *err) {
  const laci_ort_weight *weight = laci_ort_weights_find(weights, name);
  if (!weight) return laci_ort_fail(err, LAC_NOT_FOUND, "no data of the name %s", name);
  uint64_t left = offset < weight->size ? weight->size - offset : 0;
  if (*n > left) *n = (size_t)left;
  if (!*n) return LAC_OK;
  if (!weight->file) {
    memcpy(to, (const char *)weight->bytes + offset, *n);
    return LAC_OK;
  }
  int fd = open(weight->file, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : pread(fd, to, *n, (off_t)(weight->offset + offset));
  if (fd >= 0) (void)close(fd);
  if (got <= 0) return laci_ort_fail(err, LAC_IO, "%s: cannot be read", weight->file);
  *n = (size_t)got;
  return LAC_OK;
}
