/* SPDX-License-Identifier: Apache-2.0
 * Finds the processor's SIMD level by the compiler's run-time support, and caps it by LAC_CPU. A
 * value of LAC_CPU that this processor does not know is ignored, so that a typing error does not
 * silently make a run slow. The command reports the level it runs at. */
#include "cpu/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const names[] = {[LACI_CPU_ANY] = "scalar",
                                    [LACI_CPU_AVX2] = "avx2",
                                    [LACI_CPU_AVX512] = "avx512",
                                    [LACI_CPU_NEON] = "neon"};
enum { N_NAMES = sizeof names / sizeof *names };

/* The SIMD levels of this kind of processor, ascending. */
#if defined(__x86_64__)
static const laci_cpu_level ladder[] = {LACI_CPU_ANY, LACI_CPU_AVX2, LACI_CPU_AVX512};
#elif defined(__aarch64__)
static const laci_cpu_level ladder[] = {LACI_CPU_ANY, LACI_CPU_NEON};
#else
static const laci_cpu_level ladder[] = {LACI_CPU_ANY};
#endif
enum { N_STEPS = sizeof ladder / sizeof *ladder };

static atomic_int level_now = -1; /* level in force; -1: not known yet; several threads may find it
                                     at once, with the same result */
static atomic_int level_most;     /* the highest level that is allowed; set once level_now is
                                     known */

#if defined(__x86_64__)
static bool processor_has_avx512_of_kernels(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

static laci_cpu_level level_of_processor(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LACI_CPU_ANY;
  const bool all = processor_has_avx512_of_kernels() && __builtin_cpu_supports("avx512vnni");
  return all ? LACI_CPU_AVX512 : LACI_CPU_AVX2;
#else
  return ladder[N_STEPS - 1];
#endif
}

static laci_cpu_level find_max_level(void) {
  const char *cap = getenv("LAC_CPU");
  for (int i = 0; cap && i < N_STEPS; i++) {
    if (!strcmp(cap, names[ladder[i]])) return ladder[i];
  }
  return ladder[N_STEPS - 1];
}

/* Sets the level in force: the highest one that the processor has and that is not above `most`. */
static laci_cpu_level set_level(laci_cpu_level most) {
  laci_cpu_level has = level_of_processor(), level = LACI_CPU_ANY;
  for (int i = 0; i < N_STEPS && ladder[i] <= has; i++) {
    level = ladder[i];
    if (level == most) break;
  }
  atomic_store_explicit(&level_most, (int)most, memory_order_relaxed);
  atomic_store_explicit(&level_now, (int)level, memory_order_release);
  return level;
}

laci_cpu_level laci_cpu_level_in_force(void) {
  int level = atomic_load_explicit(&level_now, memory_order_acquire);
  return level >= 0 ? (laci_cpu_level)level : set_level(find_max_level());
}

bool laci_cpu_has_avx512f(void) {
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() == LACI_CPU_ANY || !processor_has_avx512_of_kernels()) return false;
  return atomic_load_explicit(&level_most, memory_order_relaxed) != LACI_CPU_AVX2;
#else
  return false;
#endif
}

bool laci_cpu_has_avx512bf16(void) {
#if defined(__x86_64__)
  return laci_cpu_level_in_force() == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

#if defined(__x86_64__)
/* Features of the processor, in EDX of CPUID's leaf 7. */
enum { TILES = 1 << 24, TILES_OF_BF16 = 1 << 22, TILES_OF_INT8 = 1 << 25 };

static bool processor_has_tiles(unsigned features) {
  enum { LEAF = 7 };
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid_count(LEAF, 0, &eax, &ebx, &ecx, &edx)) return false;
  return (edx & features) == features;
}

/* Asks the system to save tiles for the threads of this process. Linux does so only for processes
 * that ask. */
static bool ask_system_for_tiles(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  enum { ASK_FOR_COMPONENT = 0x1023, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, ASK_FOR_COMPONENT, TILE_DATA) == 0;
#else
  return false;
#endif
}
#endif

bool laci_cpu_has_bf16_tiles(void) {
#if defined(__x86_64__)
  return laci_cpu_level_in_force() == LACI_CPU_AVX512 && processor_has_tiles(TILES | TILES_OF_BF16);
#else
  return false;
#endif
}

bool laci_cpu_has_int8_tiles(void) {
#if defined(__x86_64__)
  static atomic_int allowed = -1; /* -1: the system was not asked yet */
  if (laci_cpu_level_in_force() != LACI_CPU_AVX512) return false;
  int known = atomic_load_explicit(&allowed, memory_order_relaxed);
  if (known < 0) {
    known = processor_has_tiles(TILES | TILES_OF_INT8) && ask_system_for_tiles();
    atomic_store_explicit(&allowed, known, memory_order_relaxed);
  }
  return known;
#else
  return false;
#endif
}

size_t laci_cpu_second_cache_bytes(void) {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static atomic_long known = -1; /* -1: the system was not asked yet, which may take microseconds */
  long bytes = atomic_load_explicit(&known, memory_order_relaxed);
  if (bytes < 0) {
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes < 0) bytes = 0;
    atomic_store_explicit(&known, bytes, memory_order_relaxed);
  }
  return (size_t)bytes;
#else
  return 0;
#endif
}

const char *laci_cpu_level_name(laci_cpu_level level) {
  return (int)level >= 0 && (int)level < N_NAMES ? names[level] : "unknown";
}

laci_cpu_level laci_cpu_limit_level(laci_cpu_level level) { return set_level(level); }
