/* SPDX-License-Identifier: Apache-2.0
 * Packs and unpacks elements of 4 and 2 bits. In the file, two or four elements share a byte, the
 * first in its lowest bits. In the graph, each element has a byte. Bits after the last element are
 * 0. */
#include "onnx/onnx_in.h"

#include "tensor/buf.h"

int laci_onnx_elements_per_byte(lac_dtype dtype) {
  int bits = laci_dtype_bits(dtype);
  return bits > 0 && bits < 8 ? 8 / bits : 1;
}

bool laci_onnx_count_packed_bytes(lac_dtype dtype, int64_t count, uint64_t *size_bytes) {
  const uint64_t per_byte = (uint64_t)laci_onnx_elements_per_byte(dtype);
  if (per_byte == 1)
    return !__builtin_mul_overflow((uint64_t)count, lac_dtype_size(dtype), size_bytes);
  *size_bytes = (uint64_t)count / per_byte + ((uint64_t)count % per_byte > 0);
  return true;
}

void laci_onnx_unpack_elements(lac_dtype dtype, const uint8_t *packed, uint64_t count,
                               uint8_t *to) {
  const unsigned per_byte = (unsigned)laci_onnx_elements_per_byte(dtype), width = 8 / per_byte;
  for (uint64_t at = 0; at < count; at++) {
    unsigned bits = packed[at / per_byte] >> (at % per_byte * width) & ((1u << width) - 1u);
    to[at] = laci_dtype_is_integer(dtype) ? (uint8_t)laci_int_wrap(dtype, bits) : (uint8_t)bits;
  }
}

uint8_t *laci_onnx_pack_elements(laci_arena *arena, lac_dtype dtype, const uint8_t *bytes,
                                 uint64_t count) {
  const unsigned per_byte = (unsigned)laci_onnx_elements_per_byte(dtype), width = 8 / per_byte;
  uint64_t n = 0;
  (void)laci_onnx_count_packed_bytes(dtype, (int64_t)count, &n);
  uint8_t *packed = laci_arena_alloc(arena, (size_t)n + 1, 1);
  for (uint64_t at = 0; packed && at < count; at++) {
    unsigned bits = bytes[at] & ((1u << width) - 1u);
    packed[at / per_byte] |= (uint8_t)(bits << (at % per_byte * width));
  }
  return packed;
}
