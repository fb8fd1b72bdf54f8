/* SPDX-License-Identifier: Apache-2.0
 * The variants that every kernel family has, one for each instruction set. NAME_isa.c is a common
 * source that the build compiles for each of them (cmake/kernels.cmake). NAME_<variant>.c is the
 * source of one variant and replaces NAME_isa.c for it. The scalar variant is the reference. Each
 * family makes its declarations and its table from this list. So a new instruction set needs one
 * more line here, and one in cmake/kernels.cmake. A function NAME_variant() returns the variant for
 * the instruction set in force (laci_cpu_level_in_force()). */
#ifndef LACI_KERNEL_VARIANTS_H
#define LACI_KERNEL_VARIANTS_H

/* X(name, level): name of the variant and its SIMD level of cpu/cpu.h, slowest first. Families
 * index their table of variants by the level. */
#if defined(__x86_64__)
#define LACI_KERNEL_VARIANTS(X) \
  X(scalar, LACI_CPU_ANY) X(avx2, LACI_CPU_AVX2) X(avx512, LACI_CPU_AVX512)
#elif defined(__aarch64__)
#define LACI_KERNEL_VARIANTS(X) X(scalar, LACI_CPU_ANY) X(neon, LACI_CPU_NEON)
#else
#define LACI_KERNEL_VARIANTS(X) X(scalar, LACI_CPU_ANY)
#endif

/* Names a function of the variant that is being compiled: LACI_VARIANT(laci_gate) is laci_gate_avx2
 * when the build compiles for AVX2 (-DLACI_ISA=avx2). */
#define LACI_VARIANT(name) LACI_VARIANT_JOIN(name, LACI_ISA)
#define LACI_VARIANT_JOIN(name, isa) LACI_VARIANT_PASTE(name, isa)
#define LACI_VARIANT_PASTE(name, isa) name##_##isa

#endif
