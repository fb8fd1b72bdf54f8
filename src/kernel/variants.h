/* SPDX-License-Identifier: Apache-2.0
 * The variants that every kernel family has: one file each, NAME_<variant>.c, of which the scalar
 * one defines the result. A family makes its declarations and its table of this list, so that a new
 * instruction set is a line here and a file a family. */
#ifndef LACI_KERNEL_VARIANTS_H
#define LACI_KERNEL_VARIANTS_H

/* X(name, level of cpu/cpu.h), slowest first. The table of a family is indexed by the level. */
#if defined(__x86_64__)
#define LACI_KERNEL_VARIANTS(X) \
  X(scalar, LACI_CPU_ANY) X(avx2, LACI_CPU_AVX2) X(avx512, LACI_CPU_AVX512)
#elif defined(__aarch64__)
#define LACI_KERNEL_VARIANTS(X) X(scalar, LACI_CPU_ANY) X(neon, LACI_CPU_NEON)
#else
#define LACI_KERNEL_VARIANTS(X) X(scalar, LACI_CPU_ANY)
#endif

#endif
