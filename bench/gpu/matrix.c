/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/matrix.h"

#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "gpu/device.h"
#include "tensor/buf.h"

const char *const matrix_fault_names[] = {"one non-zero too many", "along the output channels",
                                          "blocks a channel late", "a row without zeros"};

laci_pattern matrix_pattern(lac_dtype type) {
  return type == LAC_DTYPE_F32 ? (laci_pattern){1, 2} : (laci_pattern){2, 4};
}

static matrix matrix_new(lac_dtype type, int64_t out, int64_t in, bool by_input) {
  matrix m = {.type = type, .out = out, .in = in, .by_input = by_input};
  m.dims[by_input] = out, m.dims[!by_input] = in;
  m.bytes = laci_alloc((size_t)(out * in), lac_dtype_size(type));
  if (!m.bytes) die("a matrix", "not enough memory");
  return m;
}

void matrix_clear(matrix *m) {
  laci_free(m->bytes);
  *m = (matrix){0};
}

static int64_t place(const matrix *m, int64_t k, int64_t c) {
  return m->by_input ? c * m->out + k : k * m->in + c;
}

static void put(matrix *m, int64_t at, float value) {
  if (m->type == LAC_DTYPE_I8) m->bytes[at] = (uint8_t)(int8_t)value;
  else laci_write_f32(m->type, &value, 1, m->bytes + (size_t)at * lac_dtype_size(m->type));
}

static bool is_zero(const matrix *m, int64_t at) {
  const size_t size = lac_dtype_size(m->type);
  for (size_t b = 0; b < size; b++)
    if (m->bytes[(size_t)at * size + b]) return false;
  return true;
}

matrix matrix_of_layer(const laci_target_layer *layer, lac_dtype type) {
  const laci_weight_view *v = &layer->view;
  const int64_t n = v->outer * v->columns * v->inner;
  matrix m = matrix_new(type, v->outer * v->inner, v->columns, v->outer == 1 && v->inner > 1);
  for (int64_t at = 0; at < n; at++) {
    float magnitude;
    laci_read_abs_f32(v->dtype, v->bytes, at, 1, &magnitude);
    put(&m, at, magnitude > 0 ? 1 : 0);
  }
  return m;
}

static float small_number(uint64_t stream, uint64_t at) {
  static const float of[] = {-2, -1, 1, 2};
  return of[(int)(laci_rng_unit_interval(1, stream, at) * 4)];
}

/* Along the input channels, from `first` on, or along the output channels. */
static void fill(matrix *m, bool along_outputs, int64_t first, uint64_t stream) {
  const laci_pattern p = matrix_pattern(m->type);
  const int64_t lines = along_outputs ? m->in : m->out, n = along_outputs ? m->out : m->in;
  uint64_t rolls = 0;
  memset(m->bytes, 0, (size_t)(m->out * m->in) * lac_dtype_size(m->type));
  for (int64_t line = 0; line < lines; line++) {
    for (int64_t block = 0; block < n; block += p.m) {
      for (int kept = 0, left = p.m; left > 0; left--) { /* n of m, every choice as likely */
        const int64_t i = (block + p.m - left + first) % n;
        const int64_t at = along_outputs ? place(m, i, line) : place(m, line, i);
        if (laci_rng_unit_interval(2, stream, rolls++) * left >= p.n - kept) continue;
        put(m, at, small_number(stream, (uint64_t)at));
        kept++;
      }
    }
  }
}

matrix matrix_random(lac_dtype type, int64_t out, int64_t in, bool by_input, uint64_t stream) {
  matrix m = matrix_new(type, out, in, by_input);
  fill(&m, false, 0, stream);
  return m;
}

/* A zero of the first block, from a random one on; every block of matrix_random is full. */
static void spoil_group(matrix *m, uint64_t stream) {
  const int64_t k = (int64_t)(laci_rng_unit_interval(3, stream, 0) * (double)m->out);
  int64_t c = (int64_t)(laci_rng_unit_interval(3, stream, 1) * (double)m->in);
  while (!is_zero(m, place(m, k, c))) c = (c + 1) % m->in;
  put(m, place(m, k, c), 1);
}

static void fill_row(matrix *m, uint64_t stream) {
  const int64_t k = (int64_t)(laci_rng_unit_interval(3, stream, 0) * (double)m->out);
  for (int64_t c = 0; c < m->in; c++) put(m, place(m, k, c), 1);
}

matrix matrix_with_fault(matrix_fault fault, lac_dtype type, int64_t out, int64_t in, bool by_input,
                         uint64_t stream) {
  matrix m = matrix_random(type, out, in, by_input, stream);
  switch (fault) {
    case FAULT_GROUP: spoil_group(&m, stream); break;
    case FAULT_AXIS: fill(&m, true, 0, stream); break;
    case FAULT_SHIFT: fill(&m, false, 1, stream); break;
    default: fill_row(&m, stream); break;
  }
  return m;
}

laci_target_layer matrix_layer(const matrix *m) {
  return (laci_target_layer){.op = m->by_input ? "MatMul" : "Gemm",
                             .dtype = m->type,
                             .rank = 2,
                             .k_axis = m->by_input,
                             .c_axis = !m->by_input,
                             .dims = m->dims,
                             .groups = 1,
                             .channels_in = m->in,
                             .channels_out = m->out,
                             .view = {.name = "matrix",
                                      .dtype = m->type,
                                      .bytes = m->bytes,
                                      .outer = m->by_input ? 1 : m->out,
                                      .columns = m->in,
                                      .inner = m->by_input ? m->out : 1,
                                      .run = m->in}};
}
