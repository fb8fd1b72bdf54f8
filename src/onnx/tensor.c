/* SPDX-License-Identifier: Apache-2.0
 * Finds the bytes of a tensor in the decoded file: which field holds them, and whether there are as
 * many as its dims require.
 *
 * If the field has the graph's layout already (raw bytes, floats, int64 ...), the bytes are those
 * of the decoded file. If it holds wider elements (float16 in int32_data), a narrow copy is made.
 * Next: external.c, import.c. */
#include "onnx/onnx_in.h"

#include "base/error.h"
#include "base/reader.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t no_bytes[1];

const char *laci_onnx_canonical_domain(const char *domain) {
  return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

/** A repeated field of numbers in a TensorProto: its array, the number of elements, and the size of
 * an element in bytes. */
typedef struct typed_field {
  void **array;
  size_t n, element_bytes;
} typed_field;

/** Returns the field that holds elements of this type. Its array is NULL if there is none (texts,
 * unknown types). */
static typed_field find_typed_field(Onnx__TensorProto *t, lac_dtype dtype) {
  switch (dtype) {
    case LAC_DTYPE_F32:
    case LAC_DTYPE_C64: return (typed_field){(void **)&t->float_data, t->n_float_data, 4};
    case LAC_DTYPE_F64:
    case LAC_DTYPE_C128: return (typed_field){(void **)&t->double_data, t->n_double_data, 8};
    case LAC_DTYPE_I64: return (typed_field){(void **)&t->int64_data, t->n_int64_data, 8};
    case LAC_DTYPE_U32:
    case LAC_DTYPE_U64: return (typed_field){(void **)&t->uint64_data, t->n_uint64_data, 8};
    case LAC_DTYPE_NONE:
    case LAC_DTYPE_TEXT: return (typed_field){NULL, 0, 0};
    default: return (typed_field){(void **)&t->int32_data, t->n_int32_data, 4};
  }
}

static lac_status fail_wrong_size(lac_error *err, const char *name, const laci_tensor_view *view,
                                  uint64_t found, uint64_t wanted) {
  char text[256];
  return laci_fail(
      err, LAC_BAD_FILE, "tensor '%s': %" PRIu64 " bytes of data, but %s %s takes %" PRIu64, name,
      found, lac_dtype_name(view->dtype), laci_shape_text(&view->shape, text, sizeof text), wanted);
}

/** Sets view's bytes to those of a typed field. If the field's elements are as wide as the
 * tensor's, or half as wide (complex numbers), that is the array itself; else a narrow copy.
 * Elements of 4 or 2 bits have one byte in each element of the array. */
static lac_status view_typed_field(laci_onnx *file, const char *name, typed_field field,
                                   laci_tensor_view *view, lac_error *err) {
  size_t element = lac_dtype_size(view->dtype);
  bool is_narrow = element < field.element_bytes;
  size_t found = field.n * (is_narrow ? element : field.element_bytes);
  if (found != view->size_bytes) return fail_wrong_size(err, name, view, found, view->size_bytes);
  if (!is_narrow) {
    view->source = (laci_source){.kind = LACI_SOURCE_ARRAY, .array = field.array};
    view->bytes = *field.array;
    return LAC_OK;
  }
  uint8_t *narrow = laci_arena_alloc(&file->arena, field.n, element);
  if (!narrow) return laci_fail_memory(err, name);
  const uint8_t *wide = *field.array;
  for (size_t at = 0; at < field.n; at++) {
    memcpy(narrow + at * element, wide + at * field.element_bytes, element);
  }
  view->source = (laci_source){.kind = LACI_SOURCE_WIDENED,
                               .array = field.array,
                               .wide_bytes = field.element_bytes,
                               .narrow_bytes = element};
  view->bytes = narrow;
  return LAC_OK;
}

static lac_status view_external_tensor(laci_onnx *file, const Onnx__TensorProto *tensor,
                                       const char *name, laci_tensor_view *view, lac_error *err) {
  laci_external *external = laci_onnx_find_external(file, tensor);
  if (!external) return laci_fail(err, LAC_INTERNAL, "tensor '%s': no external data", name);
  if (external->length != view->size_bytes) {
    return fail_wrong_size(err, name, view, external->length, view->size_bytes);
  }
  const uint8_t *bytes = laci_reader_bytes(file->data_files[external->file].reader);
  view->source = (laci_source){.kind = LACI_SOURCE_EXTERNAL, .external = external};
  view->bytes = bytes ? bytes + external->offset : NULL;
  return LAC_OK;
}

static lac_status view_tensor_bytes(laci_onnx *file, Onnx__TensorProto *tensor, const char *name,
                                    laci_tensor_view *view, lac_error *err) {
  typed_field field = find_typed_field(tensor, view->dtype);
  if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    return view_external_tensor(file, tensor, name, view, err);
  }
  if (tensor->raw_data.len && field.n) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': its data is given twice, raw and typed",
                     name);
  }
  if (field.n) return view_typed_field(file, name, field, view, err);
  if (tensor->raw_data.len != view->size_bytes) {
    return fail_wrong_size(err, name, view, tensor->raw_data.len, view->size_bytes);
  }
  view->source = (laci_source){.kind = LACI_SOURCE_ARRAY, .array = (void **)&tensor->raw_data.data};
  view->bytes = tensor->raw_data.data;
  return LAC_OK;
}

/** Unpacks elements of 4 or 2 bits: view's bytes become a copy with one byte for each element. */
static lac_status unpack_elements(laci_onnx *file, const char *name, int64_t count,
                                  laci_tensor_view *view, lac_error *err) {
  const laci_byte_source from = laci_onnx_byte_source(file);
  laci_acquired_bytes packed = {0};
  lac_status st = laci_bytes_acquire(&from, view->bytes, view->size_bytes, name, &packed, err);
  uint8_t *elements = st ? NULL : laci_arena_alloc(&file->arena, (size_t)count, 1);
  if (!st && !elements) st = laci_fail_memory(err, name);
  if (!st) {
    laci_onnx_unpack_elements(view->dtype, packed.bytes, (uint64_t)count, elements);
    view->bytes = elements;
    view->size_bytes = (uint64_t)count;
    view->source.per_byte = laci_onnx_elements_per_byte(view->dtype);
  }
  laci_bytes_release(&packed);
  return st;
}

lac_status laci_onnx_view_tensor(laci_onnx *file, Onnx__TensorProto *tensor, const char *name,
                                 laci_tensor_view *view, lac_error *err) {
  int64_t count;
  *view = (laci_tensor_view){.shape = laci_shape_unknown(), .bytes = no_bytes};
  lac_status st = laci_onnx_count_elements(tensor, name, &count, err);
  if (st) return st;
  if (tensor->segment) {
    return laci_fail(err, LAC_UNSUPPORTED, "tensor '%s': stored in segments", name);
  }
  if (tensor->data_type <= 0) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': %d is no element type", name,
                     tensor->data_type);
  }
  if (tensor->data_type < LAC_DTYPE_COUNT) view->dtype = (lac_dtype)tensor->data_type;
  if (tensor->n_dims <= LACI_MAX_RANK) {
    view->shape = laci_shape_of((int)tensor->n_dims, tensor->dims);
  }
  if (view->dtype == LAC_DTYPE_TEXT && tensor->n_string_data != (size_t)count) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': %zu texts, but its dims want %" PRId64, name,
                     tensor->n_string_data, count);
  }
  size_t element = lac_dtype_size(view->dtype);
  if (element == 0) return LAC_OK;
  if (!laci_onnx_count_packed_bytes(view->dtype, count, &view->size_bytes)) {
    return laci_fail(err, LAC_BAD_FILE, "tensor '%s': its dims overflow 64 bits", name);
  }
  st = view_tensor_bytes(file, tensor, name, view, err);
  if (!st && count > 0 && laci_onnx_elements_per_byte(view->dtype) > 1)
    st = unpack_elements(file, name, count, view, err);
  if (!view->bytes) view->bytes = no_bytes;
  return st;
}
