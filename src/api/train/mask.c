/* SPDX-License-Identifier: Apache-2.0
 * lacuna/mask.h: a list of masks by name. sparse/mask.h chooses masks. */
#include "lacuna/mask.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "api/model/structs.h"
#include "api/train/mask_in.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "lacuna/report.h"
#include "sparse/mask.h"
#include "tensor/shape.h"

typedef struct entry {
  char *name;
  uint8_t *bytes;
  size_t count;
} entry;

struct lac_mask {
  entry *entries;
  size_t n, capacity;
};

lac_status lac_mask_create(lac_mask **mask, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"mask", mask});
  if (st) return st;
  *mask = laci_alloc(1, sizeof **mask);
  return *mask ? LAC_OK : laci_fail_memory(err, "masks");
}

void lac_mask_destroy(lac_mask *mask) {
  if (!mask) return;
  for (size_t at = 0; at < mask->n; at++) {
    laci_free(mask->entries[at].name);
    laci_free(mask->entries[at].bytes);
  }
  laci_free(mask->entries);
  laci_free(mask);
}

/** Finds the mask of this name. Returns NULL if there is none, or if mask or name is NULL. */
static const entry *find_mask_entry(const lac_mask *mask, const char *name) {
  if (!mask || !name) return NULL;
  for (size_t at = 0; at < mask->n; at++) {
    if (strcmp(mask->entries[at].name, name) == 0) return &mask->entries[at];
  }
  return NULL;
}

/* ---- Adding ---- */

static bool is_float(lac_dtype dtype) {
  return dtype == LAC_DTYPE_F16 || dtype == LAC_DTYPE_BF16 || dtype == LAC_DTYPE_F32 ||
         dtype == LAC_DTYPE_F64;
}

/** Describes the weight's layout for src/sparse, as [outer, columns, inner]. */
static lac_status make_weight_view(const lac_mask *mask, const lac_mask_weight *w,
                                   laci_weight_view *view, lac_error *err) {
  const laci_named_pointer given[] = {{"name", w->name}, {"values", w->values}};
  lac_status st = laci_check_arguments_not_null("lac_mask_weight", given, 2, err);
  if (st) return st;
  if (!is_float(w->dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s, wanted f16, bf16, f32 or f64",
                     w->name, lac_dtype_name(w->dtype));
  }
  if (w->rank < 1 || w->rank > LACI_MAX_RANK || w->c_axis < 0 || w->c_axis >= w->rank) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: axis %d of %d, wanted one of 1 to %d axes", w->name,
                     w->c_axis, w->rank, LACI_MAX_RANK);
  }
  laci_shape shape = laci_shape_of(w->rank, w->shape);
  int64_t count = laci_shape_is_known(&shape) ? laci_shape_count(&shape) : -1;
  if (count < 0 || count > INT64_MAX / 8) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: sizes that are no tensor's", w->name);
  }
  if (find_mask_entry(mask, w->name))
    return laci_fail(err, LAC_EXISTS, "%s: it has a mask already", w->name);
  *view = (laci_weight_view){.name = w->name,
                             .dtype = w->dtype,
                             .bytes = w->values,
                             .outer = laci_shape_count_range(&shape, 0, w->c_axis),
                             .columns = w->shape[w->c_axis],
                             .inner = laci_shape_count_range(&shape, w->c_axis + 1, w->rank)};
  view->run = view->columns;
  return LAC_OK;
}

/** Makes a new last entry; it is not part of the list until mask->n is increased. */
static lac_status make_mask_entry(lac_mask *mask, const laci_weight_view *view, entry **made,
                                  lac_error *err) {
  void *array = mask->entries;
  if (!laci_grow(&array, mask->n, &mask->capacity, sizeof *mask->entries)) {
    return laci_fail_memory(err, view->name);
  }
  mask->entries = array;
  entry *e = &mask->entries[mask->n];
  size_t length = strlen(view->name);
  e->count = (size_t)(view->outer * view->columns * view->inner);
  e->name = laci_alloc(length + 1, 1);
  e->bytes = laci_alloc(e->count, 1);
  if (!e->name || !e->bytes) {
    laci_free(e->name);
    laci_free(e->bytes);
    return laci_fail_memory(err, view->name);
  }
  memcpy(e->name, view->name, length);
  *made = e;
  return LAC_OK;
}

static void add_or_free_entry(lac_mask *mask, entry *e, lac_status st) {
  if (!st) {
    mask->n++;
    return;
  }
  laci_free(e->name);
  laci_free(e->bytes);
}

lac_status lac_mask_add(lac_mask *mask, const lac_mask_weight *weight, int n, int m,
                        lac_error *err) {
  laci_weight_view view = {0};
  entry *e = NULL;
  if (n < 1 || m > 64 || n >= m) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a pattern of %d:%d, wanted 1 <= n < m <= 64", n, m);
  }
  lac_mask_weight own;
  lac_status st = LACI_CHECK_GIVEN(err, {"mask", mask}, {"weight", weight});
  if (!st) st = laci_take_mask_weight(weight, &own, err);
  if (!st) st = make_weight_view(mask, &own, &view, err);
  if (!st) st = make_mask_entry(mask, &view, &e, err);
  if (st) return st;
  st = laci_mask_choose(&view, (laci_pattern){n, m}, NULL, e->bytes, err);
  add_or_free_entry(mask, e, st);
  return st;
}

lac_status lac_mask_add_zeros(lac_mask *mask, const lac_mask_weight *weight, lac_error *err) {
  laci_weight_view view = {0};
  entry *e = NULL;
  lac_mask_weight own;
  lac_status st = LACI_CHECK_GIVEN(err, {"mask", mask}, {"weight", weight});
  if (!st) st = laci_take_mask_weight(weight, &own, err);
  if (!st) st = make_weight_view(mask, &own, &view, err);
  if (st) return st;
  int64_t bad =
      laci_find_first_not_finite(view.dtype, view.bytes, view.outer * view.columns * view.inner);
  if (bad >= 0) {
    return laci_fail(err, LAC_BAD_VALUE, "%s: element %" PRId64 " is no finite number", view.name,
                     bad);
  }
  st = make_mask_entry(mask, &view, &e, err);
  if (st) return st;
  laci_mask_from_zeros(&view, e->bytes);
  add_or_free_entry(mask, e, LAC_OK);
  return LAC_OK;
}

static lac_status add_layer_mask(lac_mask *mask, const lac_model *model, const lac_layer *layer,
                                 lac_error *err) {
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  lac_status st = lac_model_find_tensor(model, layer->weight, &tensor, err);
  if (st) return st;
  lac_mask_weight weight = {.size = sizeof weight,
                            .name = tensor.name,
                            .dtype = tensor.dtype,
                            .rank = tensor.rank,
                            .c_axis = layer->c_axis,
                            .values = tensor.bytes};
  memcpy(weight.shape, tensor.shape, sizeof weight.shape);
  return lac_mask_add_zeros(mask, &weight, err);
}

lac_status lac_mask_from_model(const lac_model *model, const lac_options *options, lac_mask **mask,
                               lac_error *err) {
  lac_report *report = NULL;
  lac_mask *made = NULL;
  if (mask) *mask = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"mask", mask});
  if (!st) st = lac_check(model, NULL, options, &report, err);
  if (!st) st = lac_mask_create(&made, err);
  for (int at = 0; !st && at < report->n_layers; at++) {
    const lac_layer *layer = &report->layers[at];
    bool counts = layer->eligible && layer->pruned && is_float(layer->dtype);
    if (counts && !find_mask_entry(made, layer->weight))
      st = add_layer_mask(made, model, layer, err);
  }
  lac_report_destroy(report);
  if (st) lac_mask_destroy(made);
  else *mask = made;
  return st;
}

/* ---- Using ---- */

int lac_mask_count(const lac_mask *mask) { return mask ? (int)mask->n : 0; }

const char *lac_mask_name(const lac_mask *mask, int at) {
  return at >= 0 && at < lac_mask_count(mask) ? mask->entries[at].name : NULL;
}

lac_status lac_mask_bytes(const lac_mask *mask, const char *name, const uint8_t **bytes,
                          size_t *count, lac_error *err) {
  lac_status st =
      LACI_CHECK_GIVEN(err, {"mask", mask}, {"name", name}, {"bytes", bytes}, {"count", count});
  if (st) return st;
  const entry *e = find_mask_entry(mask, name);
  if (!e) return laci_fail(err, LAC_NOT_FOUND, "%s: it has no mask", name);
  *bytes = e->bytes;
  *count = e->count;
  return LAC_OK;
}

lac_status lac_mask_apply(const lac_mask *mask, const char *name, lac_dtype dtype, void *values,
                          size_t count, lac_error *err) {
  /* a mask without elements may have no values (NULL) */
  lac_status st = LACI_CHECK_GIVEN(err, {"mask", mask}, {"name", name},
                                   {"values", count ? values : (const void *)name});
  if (st) return st;
  const entry *e = find_mask_entry(mask, name);
  size_t size = lac_dtype_size(dtype);
  if (!e) return LAC_OK;
  if (e->count != count) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %zu elements, but its mask has %zu", name, count,
                     e->count);
  }
  if (size == 0) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: elements of type %s", name, lac_dtype_name(dtype));
  }
  uint8_t *at = values;
  for (size_t k = 0; k < count; k++, at += size) {
    if (!e->bytes[k]) memset(at, 0, size);
  }
  return LAC_OK;
}

/* ---- Comparing and sending masks between processes ---- */

uint64_t laci_mask_hash(const lac_mask *mask, int at) {
  return laci_hash64(mask->entries[at].bytes, mask->entries[at].count, 0);
}

static uint64_t hash_names(const lac_mask *mask) {
  uint64_t hash = 0;
  for (size_t at = 0; mask && at < mask->n; at++) {
    const entry *e = &mask->entries[at];
    hash = laci_hash64(e->name, strlen(e->name), hash);
    hash = laci_hash64(&e->count, sizeof e->count, hash);
  }
  return hash;
}

lac_status laci_mask_broadcast(lac_mask *mask, laci_comm *comm, lac_error *err) {
  const uint64_t ours = hash_names(mask);
  uint64_t first = ours;
  if (!comm) return LAC_OK;
  lac_status st = laci_comm_broadcast(comm, &first, sizeof first, err);
  if (!st && first != ours) {
    st = laci_fail(err, LAC_BAD_SHAPE, "it has masks of other weights than process 0");
  }
  st = laci_comm_agree_on_status(comm, st, err);
  for (size_t at = 0; mask && at < mask->n && !st; at++) {
    st = laci_comm_broadcast(comm, mask->entries[at].bytes, mask->entries[at].count, err);
  }
  return st;
}
