/* SPDX-License-Identifier: Apache-2.0
 * Random inputs and parameters for the proof: any will do that let every channel matter. */
#include "prove/prove_in.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

enum { INPUT_STREAM = 1 << 30, BATCH = 2, TOKENS = 8, MAX_WALK = 8 };

static const int64_t spatial_sizes[] = {32, 64, 128, 224, 299, 8, 16, 1};

/* First axes are batches; axes behind the channels of an image are heights and widths; the rest counts tokens. */
static int64_t size_for(int rank, int axis, int64_t spatial) {
  if (axis == 0) return BATCH;
  return rank >= 4 ? spatial : TOKENS;
}

bool laci_choose_sizes(const laci_graph *graph, int attempt, int64_t *size_of_symbol) {
  int n_sizes = (int)(sizeof spatial_sizes / sizeof *spatial_sizes);
  bool any = false;
  for (int s = 0; s <= graph->n_symbols; s++) size_of_symbol[s] = 0;
  for (int i = 0; i < graph->n_inputs; i++) {
    const laci_shape *shape = &graph->values[graph->inputs[i]].type.shape;
    for (int a = 0; a < shape->rank; a++) {
      int64_t symbol = -shape->dims[a];
      if (symbol <= 0 || size_of_symbol[symbol]) continue;
      any = true;
      size_of_symbol[symbol] =
          size_for(shape->rank, a, spatial_sizes[attempt < n_sizes ? attempt : 0]);
    }
  }
  return attempt == 0 || (any && attempt < n_sizes);
}

static bool resolve(const laci_shape *shape, const int64_t *size_of_symbol, laci_shape *out) {
  *out = *shape;
  for (int a = 0; a < shape->rank; a++) {
    if (shape->dims[a] < 0) out->dims[a] = size_of_symbol[-shape->dims[a]];
    if (shape->dims[a] < 0 && !out->dims[a]) return false;
  }
  return shape->rank >= 0;
}

/* Steps that hand indices on as they are. */
static bool passes_indices(const char *type) {
  static const char *const types[] = {"Cast",     "Reshape", "Unsqueeze", "Squeeze",
                                      "Identity", "Flatten", "Transpose"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(type, types[i]) == 0) return true;
  }
  return false;
}

/* How many things an integer value indexes; 2 where nobody says. */
static int64_t index_range(const laci_graph *graph, int value, int depth) {
  const laci_value *v = &graph->values[value];
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *reader = &graph->nodes[v->readers[i]];
    bool gathers = strncmp(reader->type, "Gather", 6) == 0;
    if (gathers && reader->n_inputs > 1 && reader->inputs[1] == value && reader->inputs[0] >= 0) {
      const laci_shape *data = &graph->values[reader->inputs[0]].type.shape;
      int64_t axis = laci_node_int(reader, "axis", 0);
      if (axis < 0) axis += data->rank;
      if (axis >= 0 && axis < data->rank && data->dims[axis] > 0) return data->dims[axis];
    }
    if (depth < MAX_WALK && passes_indices(reader->type) && reader->inputs[0] == value &&
        reader->outputs[0] >= 0) {
      int64_t range = index_range(graph, reader->outputs[0], depth + 1);
      if (range != 2) return range;
    }
  }
  return 2;
}

/* Roughly normal: twelve uniforms would be the textbook's, four are enough here. */
static double around_zero(uint64_t seed, uint64_t stream, uint64_t at) {
  double sum = 0;
  for (uint64_t k = 0; k < 4; k++) sum += laci_rng_unit(seed, stream, at * 4 + k);
  return (sum - 2) * 1.7320508075688772;
}

lac_status laci_random_value(const laci_graph *graph, int value, const int64_t *size_of_symbol,
                             uint64_t seed, laci_buf **buf, lac_error *err) {
  const laci_type *type = &graph->values[value].type;
  laci_shape shape;
  if (!resolve(&type->shape, size_of_symbol, &shape)) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: its shape is not known; --input-shape NAME=SIZES tells it",
                     graph->values[value].name);
  }
  lac_dtype dtype = type->dtype == LAC_DTYPE_NONE ? LAC_DTYPE_F32 : type->dtype;
  lac_status st = laci_buf_create(dtype, &shape, buf, err);
  if (st) return laci_fail_in(err, st, "%s", graph->values[value].name);
  uint64_t stream = INPUT_STREAM + (uint64_t)value;
  uint64_t range = dtype == LAC_DTYPE_BOOL ? 2 : (uint64_t)index_range(graph, value, 0);
  for (int64_t e = 0; e < (*buf)->count; e++) {
    if ((*buf)->f) (*buf)->f[e] = around_zero(seed, stream, (uint64_t)e);
    else (*buf)->i[e] = (int64_t)laci_rng_below(seed, stream, (uint64_t)e, range);
  }
  return LAC_OK;
}

void laci_redraw(laci_buf *buf, int stored, uint64_t seed) {
  if (!buf->f || buf->count < 2) return;
  bool positive = true;
  double sum = 0, squares = 0;
  for (int64_t e = 0; e < buf->count; e++) {
    positive &= buf->f[e] >= 0;
    sum += buf->f[e];
    squares += buf->f[e] * buf->f[e];
  }
  double mean = sum / (double)buf->count, size = sqrt(squares / (double)buf->count);
  if (!isfinite(mean) || !isfinite(size)) return;
  if (mean == 0) mean = 1;
  if (size == 0) size = 0.1;
  for (int64_t e = 0; e < buf->count; e++) {
    uint64_t at = (uint64_t)e;
    buf->f[e] = positive ? mean * (0.5 + laci_rng_unit(seed, (uint64_t)stored, at))
                         : size * around_zero(seed, (uint64_t)stored, at);
  }
}
