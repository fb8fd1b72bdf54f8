/* SPDX-License-Identifier: Apache-2.0
 * Reads and sets the flushing of denormals in the processor's control register. */
#include "cpu/denormals.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { OF_RESULTS = 1 << 15, OF_OPERANDS = 1 << 6, BOTH = OF_RESULTS | OF_OPERANDS };

static uint64_t read_float_control(void) { return _mm_getcsr(); }
static void write_float_control(uint64_t mode) { _mm_setcsr((unsigned)mode); }
#elif defined(__aarch64__)
enum { BOTH = 1 << 24 };

static uint64_t read_float_control(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
static void write_float_control(uint64_t mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
enum { BOTH = 1 };

static uint64_t read_float_control(void) { return 0; }
static void write_float_control(uint64_t mode) { (void)mode; }
#endif

bool laci_denormals_are_flushed(void) { return (read_float_control() & BOTH) == BOTH; }

bool laci_denormals_set_flushed(bool flush) {
  const uint64_t mode = read_float_control(), wanted = flush ? mode | BOTH : mode & ~(uint64_t)BOTH;
  if (wanted != mode) write_float_control(wanted);
  return (mode & BOTH) == BOTH;
}
