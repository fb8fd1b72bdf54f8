/* SPDX-License-Identifier: Apache-2.0
 * topn.h by the vector instructions that every 64-bit ARM has: what topn_vector_in.h needs of them.
 * Sums are lanes of 32 bits, made by pairwise additions. */
#include <arm_neon.h>
#include <stdint.h>

typedef uint8x16_t lanes;

static inline int16x8_t words(lanes v) { return vreinterpretq_s16_u8(v); }
static inline uint32x4_t wide(lanes v) { return vreinterpretq_u32_u8(v); }

static inline lanes load(const char *at) { return vld1q_u8((const uint8_t *)at); }
static inline void store(char *at, lanes v) { vst1q_u8((uint8_t *)at, v); }
static inline lanes set_zero(void) { return vdupq_n_u8(0); }
static inline lanes max_u8(lanes a, lanes b) { return vmaxq_u8(a, b); }
static inline lanes min_u8(lanes a, lanes b) { return vminq_u8(a, b); }

static inline lanes max_i16(lanes a, lanes b) {
  return vreinterpretq_u8_s16(vmaxq_s16(words(a), words(b)));
}

static inline lanes min_i16(lanes a, lanes b) {
  return vreinterpretq_u8_s16(vminq_s16(words(a), words(b)));
}

static inline lanes add_u8(lanes sums, lanes v) {
  return vreinterpretq_u8_u32(vpadalq_u16(wide(sums), vpaddlq_u8(v)));
}

static inline lanes add_i16(lanes sums, lanes v) {
  return vreinterpretq_u8_u32(vpadalq_u16(wide(sums), vreinterpretq_u16_u8(v)));
}

static inline int64_t total_of(lanes sums) { return (int64_t)vaddlvq_u32(wide(sums)); }

#define TOPN_NTH laci_nth_largest_neon
#define TOPN_SUM laci_top_sum_neon
#include "kernel/topn_vector_in.h"
