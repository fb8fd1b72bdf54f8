/* SPDX-License-Identifier: Apache-2.0
 * Prints masks as text, from the zeros of stored tensors. A group is m neighbours along the axis of
 * input channels. A row has all groups with the same indices on the other axes; the last axis is
 * the fastest. */
#include "masks.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "terminal.h"

enum { WIDTH = 80, INDENT = 4 };

static bool is_float_type(lac_dtype dtype) {
  return dtype == LAC_DTYPE_F16 || dtype == LAC_DTYPE_BF16 || dtype == LAC_DTYPE_F32 ||
         dtype == LAC_DTYPE_F64;
}

/* Is element `at` zero? The sign bit of floats is ignored: -0.0 is zero, too. */
static bool is_element_zero(const lac_tensor *tensor, int64_t at, size_t size) {
  const uint8_t *bytes = (const uint8_t *)tensor->bytes + (size_t)at * size;
  uint8_t any = is_float_type(tensor->dtype) ? bytes[size - 1] & 0x7f : bytes[size - 1];
  for (size_t i = 0; i + 1 < size; i++) any |= bytes[i];
  return any == 0;
}

/* Are the layer's zeros stored as zeros? Quantized integers may have a zero point other than 0.
 * Elements that count as zero are then stored as that number. */
static bool has_zeros_stored_as_zeros(const lac_tensor *tensor, const lac_layer *layer,
                                      size_t size) {
  if (is_float_type(tensor->dtype)) return true;
  int64_t n_zeros = 0;
  for (int64_t i = 0; i < layer->n_elements; i++) n_zeros += is_element_zero(tensor, i, size);
  return n_zeros == layer->n_zeros;
}

/* Returns the index of the first element, that of input channel 0, of row number `row`. */
static int64_t first_element_of_row(const lac_layer *layer, int64_t row) {
  int64_t at = 0, stride = 1;
  for (int axis = layer->rank - 1; axis >= 0; axis--) {
    if (axis != layer->c_axis) {
      at += row % layer->shape[axis] * stride;
      row /= layer->shape[axis];
    }
    stride *= layer->shape[axis];
  }
  return at;
}

static int64_t stride_of_input_channel(const lac_layer *layer) {
  int64_t stride = 1;
  for (int axis = layer->rank - 1; axis > layer->c_axis; axis--) stride *= layer->shape[axis];
  return stride;
}

/* Prints the name and returns the column at which lines of the mask begin: after the name, or on
 * the next line if the name takes more than half a line. */
static int print_layer_name(const char *name, int columns, FILE *out) {
  char *shown = laci_alloc(strlen(name) + sizeof "...", 1);
  if (!shown) return -1;
  int cells = text_count_cells(text_shorten(name, columns, shown));
  bool is_long = terminal_columns(out) && cells > columns / 2;
  fprintf(out, is_long ? "%s\n%*s" : "%s %*s", shown, is_long ? INDENT - 1 : 0, "");
  laci_free(shown);
  return is_long ? INDENT - 1 : cells + 1;
}

lac_status mask_print_groups(const lac_model *model, const lac_report *report,
                             const lac_layer *layer, int n_groups, FILE *out, lac_error *err) {
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  if (layer->computed) return LAC_OK;
  lac_status st = lac_model_find_tensor(model, layer->weight, &tensor, err);
  size_t size = st ? 0 : lac_dtype_size(tensor.dtype);
  if (st || size == 0 || layer->n_elements == 0 || layer->c_axis >= layer->rank) return st;
  int columns = terminal_columns(out) ? terminal_columns(out) : WIDTH;
  int name_width = print_layer_name(layer->weight, columns, out), column = name_width;
  if (name_width < 0) return laci_fail_memory(err, "a mask");
  if (!has_zeros_stored_as_zeros(&tensor, layer, size)) {
    fprintf(out, " stored with a zero point, not drawn\n");
    return LAC_OK;
  }
  int64_t n_channels = layer->shape[layer->c_axis], stride = stride_of_input_channel(layer);
  int64_t n_rows = layer->n_elements / n_channels;
  for (int64_t row = 0; row < n_rows; row++) {
    int64_t start = first_element_of_row(layer, row);
    for (int64_t channel = 0; channel < n_channels; channel++) {
      if (channel % report->pattern_m == 0) {
        if (n_groups-- == 0) goto out;
        if (column + 1 + report->pattern_m > columns && column > name_width) {
          fprintf(out, "\n%*s", name_width, "");
          column = name_width;
        }
        column += fprintf(out, " ");
      }
      column += fprintf(out, "%d", !is_element_zero(&tensor, start + channel * stride, size));
    }
  }
out:
  fputc('\n', out);
  return LAC_OK;
}
