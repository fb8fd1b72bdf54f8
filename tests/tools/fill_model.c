// SPDX-License-Identifier: Apache-2.0
/* Gives the stripped tensors of a fixture new random data, so that a small file stands for a whole
 * network.
 *
 *     fill_model IN.onnx OUT.onnx SEED
 *
 * A tensor whose doc_string is a rule (written by tools/models/strip.py) is filled in its own type:
 *
 *     fill:weight F   g * exp(0.7 * c) * sqrt(2 / F) / exp(0.49), c one per column (axis 1): heavy
 *                     tails
 *     fill:positive   uniform 0.5 .. 1.5
 *     fill:small      0.1 * g
 *     fill:int8       24 * g * exp(0.7 * c), rounded, -127 .. 127 (128 is added for uint8)
 *
 * g and c are near-gaussian. Everything else in the file stays. Same input and seed: same bytes, on
 * every machine, since only + * / sqrt are used (build without contraction into fused
 * multiply-add). Generator: splitmix64 of a counter under a key made of the seed and the tensor's
 * place in the file. */
#include "onnx.pb-c.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_F32 = 1, TYPE_UINT8 = 2, TYPE_INT8 = 3, TYPE_F16 = 10, TYPE_F64 = 11, TYPE_BF16 = 16 };

typedef enum { FILL_WEIGHT, FILL_POSITIVE, FILL_SMALL, FILL_INT8 } fill_kind;

typedef struct {
  uint64_t seed;
  uint64_t n_tensors; /* filled so far: the next tensor's place */
  const char *error;  /* first cause, NULL while all is well */
  char error_text[256];
} filler;

static void fail(filler *f, const char *tensor, const char *what) {
  if (f->error) return;
  (void)snprintf(f->error_text, sizeof f->error_text, "%s: %s", tensor, what);
  f->error = f->error_text;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static uint64_t word(uint64_t key, uint64_t counter) {
  return mix(key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static double uniform(uint64_t key, uint64_t i) { return (double)(word(key, i) >> 11) * 0x1p-53; }

/* Sum of twelve 16-bit uniforms less its mean: variance 1, tails up to 6. */
static double gaussian(uint64_t key, uint64_t i) {
  uint32_t sum = 0;
  for (uint64_t k = 0; k < 3; k++) {
    const uint64_t w = word(key, 3 * i + k);
    sum += (uint32_t)(w & 0xffff) + (uint32_t)(w >> 16 & 0xffff) + (uint32_t)(w >> 32 & 0xffff) +
           (uint32_t)(w >> 48);
  }
  return ((double)sum + 6.0) * 0x1p-16 - 6.0;
}

/* exp(x) to 0.1 % for |x| < 3, as (1 + x / 4096)^4096: no libm, so the same bits everywhere. */
static double rough_exp(double x) {
  double y = 1.0 + x / 4096.0;
  for (int i = 0; i < 12; i++) y *= y;
  return y;
}

/* Round to nearest even; what is below the smallest normal f16 becomes a subnormal or 0. */
static uint16_t to_f16(double value) {
  const uint16_t sign = value < 0.0 ? 0x8000 : 0;
  double a = fabs(value);
  if (!(a < 65504.0)) return (uint16_t)(sign | 0x7bff);
  int exponent = 1;
  a *= 0x1p14; /* now in units of the smallest normal */
  while (a >= 2.0) {
    a *= 0.5;
    exponent++;
  }
  double steps = a * 1024.0;
  uint32_t mantissa = (uint32_t)steps;
  const double rest = steps - (double)mantissa;
  if (rest > 0.5 || (rest == 0.5 && (mantissa & 1))) mantissa++;
  return (uint16_t)(sign | (((uint32_t)(exponent - 1) << 10) + mantissa));
}

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static size_t size_of(int32_t type) {
  switch (type) {
    case TYPE_F64: return 8;
    case TYPE_F32: return 4;
    case TYPE_F16:
    case TYPE_BF16: return 2;
    case TYPE_INT8:
    case TYPE_UINT8: return 1;
    default: return 0;
  }
}

/* ONNX stores little-endian numbers, and so do the machines this tool runs on. */
static void store(uint8_t *out, int32_t type, double value) {
  const float f32 = (float)value;
  uint16_t u16;
  switch (type) {
    case TYPE_F64: memcpy(out, &value, sizeof value); break;
    case TYPE_F32: memcpy(out, &f32, sizeof f32); break;
    case TYPE_F16:
      u16 = to_f16(value);
      memcpy(out, &u16, sizeof u16);
      break;
    case TYPE_BF16:
      u16 = to_bf16(f32);
      memcpy(out, &u16, sizeof u16);
      break;
    default: {
      double byte = floor(value + 0.5);
      byte = byte > 127.0 ? 127.0 : byte < -127.0 ? -127.0 : byte;
      *out = (uint8_t)((int)byte + (type == TYPE_UINT8 ? 128 : 0));
    }
  }
}

static bool parse_rule(const char *rule, fill_kind *kind, double *scale) {
  long fan_in = 0;
  *scale = 1.0;
  if (sscanf(rule, "fill:weight %ld", &fan_in) == 1 && fan_in > 0) {
    *kind = FILL_WEIGHT;
    *scale = sqrt(2.0 / (double)fan_in) / 1.6323162199553791; /* exp(0.49) */
  } else if (strcmp(rule, "fill:positive") == 0) {
    *kind = FILL_POSITIVE;
  } else if (strcmp(rule, "fill:small") == 0) {
    *kind = FILL_SMALL;
    *scale = 0.1;
  } else if (strcmp(rule, "fill:int8") == 0) {
    *kind = FILL_INT8;
    *scale = 24.0;
  } else {
    return false;
  }
  return true;
}

typedef struct {
  int32_t type;
  size_t count;
  size_t columns; /* length of axis 1, or 1 */
  size_t inner;   /* product of the axes after it */
} layout;

static bool layout_of(const Onnx__TensorProto *t, layout *out) {
  *out = (layout){.type = t->data_type, .count = 1, .columns = 1, .inner = 1};
  for (size_t i = 0; i < t->n_dims; i++) {
    const int64_t d = t->dims[i];
    if (d <= 0 || (uint64_t)d > ((uint64_t)1 << 31) / out->count)
      return false; /* protobuf's own limit */
    out->count *= (size_t)d;
    if (i == 1) out->columns = (size_t)d;
    if (i > 1) out->inner *= (size_t)d;
  }
  return size_of(out->type) != 0;
}

static void write_values(uint8_t *out, const layout *l, fill_kind kind, double scale,
                         const double *column, uint64_t key) {
  const size_t size = size_of(l->type);
  for (size_t i = 0; i < l->count; i++) {
    const double value = kind == FILL_POSITIVE
                             ? 0.5 + uniform(key, i)
                             : gaussian(key, i) * scale * column[i / l->inner % l->columns];
    store(out + i * size, l->type, value);
  }
}

static void fill_tensor(filler *f, Onnx__TensorProto *t) {
  fill_kind kind;
  double scale;
  layout l;
  const char *name = t->name ? t->name : "(unnamed tensor)";
  if (!t->doc_string || strncmp(t->doc_string, "fill:", 5) != 0) return;
  if (!parse_rule(t->doc_string, &kind, &scale)) {
    fail(f, name, "doc_string is not a fill rule");
    return;
  }
  if (!layout_of(t, &l)) {
    fail(f, name, "dims or type cannot be filled");
    return;
  }
  const uint64_t key = mix(mix(f->seed + 1) + f->n_tensors++);
  uint8_t *bytes = malloc(l.count * size_of(l.type));
  double *column = malloc(l.columns * sizeof *column);
  if (!bytes || !column) {
    fail(f, name, "out of memory");
    free(bytes);
    free(column);
    return;
  }
  for (size_t c = 0; c < l.columns; c++)
    column[c] = kind == FILL_SMALL ? 1.0 : rough_exp(0.7 * gaussian(mix(key), c));
  write_values(bytes, &l, kind, scale, column, key);
  free(column);
  if (t->has_raw_data) free(t->raw_data.data);
  t->has_raw_data = 1;
  t->raw_data = (ProtobufCBinaryData){.len = l.count * size_of(l.type), .data = bytes};
  free(t->doc_string);
  t->doc_string = NULL;
}

static void fill_graph(filler *f, Onnx__GraphProto *g);

static void fill_nodes(filler *f, Onnx__NodeProto **nodes, size_t n_nodes) {
  for (size_t n = 0; n < n_nodes; n++) {
    for (size_t i = 0; i < nodes[n]->n_attribute; i++) {
      Onnx__AttributeProto *a = nodes[n]->attribute[i];
      if (a->t) fill_tensor(f, a->t);
      for (size_t k = 0; k < a->n_tensors; k++) fill_tensor(f, a->tensors[k]);
      if (a->g) fill_graph(f, a->g);
      for (size_t k = 0; k < a->n_graphs; k++) fill_graph(f, a->graphs[k]);
    }
  }
}

static void fill_graph(filler *f, Onnx__GraphProto *g) {
  for (size_t i = 0; i < g->n_initializer; i++) fill_tensor(f, g->initializer[i]);
  fill_nodes(f, g->node, g->n_node);
}

static uint8_t *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  uint8_t *bytes = NULL;
  long end = 0;
  if (!file) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0)
    bytes = malloc((size_t)end);
  if (bytes && fread(bytes, 1, (size_t)end, file) != (size_t)end) {
    free(bytes);
    bytes = NULL;
  }
  *size = (size_t)end;
  (void)fclose(file);
  return bytes;
}

static bool write_file(const char *path, const Onnx__ModelProto *model) {
  const size_t size = onnx__model_proto__get_packed_size(model);
  uint8_t *bytes = malloc(size);
  FILE *file = bytes ? fopen(path, "wb") : NULL;
  bool ok = false;
  if (file) {
    (void)onnx__model_proto__pack(model, bytes);
    ok = fwrite(bytes, 1, size, file) == size;
    ok = fclose(file) == 0 && ok;
    if (!ok) (void)remove(path);
  }
  free(bytes);
  return ok;
}

int main(int argc, char **argv) {
  char *end = NULL;
  if (argc != 4) {
    (void)fprintf(stderr, "usage: fill_model IN.onnx OUT.onnx SEED\n");
    return 2;
  }
  filler f = {.seed = strtoull(argv[3], &end, 10)};
  if (end == argv[3] || *end) {
    (void)fprintf(stderr, "fill_model: seed %s is not a number\n", argv[3]);
    return 2;
  }
  size_t size = 0;
  uint8_t *bytes = read_file(argv[1], &size);
  Onnx__ModelProto *model = bytes ? onnx__model_proto__unpack(NULL, size, bytes) : NULL;
  free(bytes);
  if (!model || !model->graph) {
    (void)fprintf(stderr, "fill_model: %s: not a model that can be read\n", argv[1]);
    onnx__model_proto__free_unpacked(model, NULL);
    return 1;
  }
  fill_graph(&f, model->graph);
  for (size_t i = 0; i < model->n_functions; i++)
    fill_nodes(&f, model->functions[i]->node, model->functions[i]->n_node);
  if (!f.error && !write_file(argv[2], model)) fail(&f, argv[2], "cannot be written");
  if (f.error) (void)fprintf(stderr, "fill_model: %s\n", f.error);
  onnx__model_proto__free_unpacked(model, NULL);
  return f.error ? 1 : 0;
}
