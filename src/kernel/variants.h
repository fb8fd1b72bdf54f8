/* SPDX-License-Identifier: Apache-2.0
 * The variants that every kernel family has, one for each instruction set. NAME_isa.c is one text
 * that the build compiles for all of them (cmake/kernels.cmake); NAME_<variant>.c is the text of
 * one and is used in place of NAME_isa.c. The scalar variant defines the result. A family makes its
 * declarations and its table of this list, so that a new instruction set is a line here and one
 * there. */
#ifndef LACI_KERNEL_VARIANTS_H
#define LACI_KERNEL_VARIANTS_H

/* X(name, level of cpu/cpu.h), slowest first. Families index their table of variants by the
 * level. */
#if defined(__x86_64__)
#define LACI_KERNEL_VARIANTS(X) \
  X(scalar, LACI_CPU_ANY) X(avx2, LACI_CPU_AVX2) X(avx512, LACI_CPU_AVX512)
#elif defined(__aarch64__)
#define LACI_KERNEL_VARIANTS(X) X(scalar, LACI_CPU_ANY) X(neon, LACI_CPU_NEON)
#else
#define LACI_KERNEL_VARIANTS(X) X(scalar, LACI_CPU_ANY)
#endif

/* LACI_VARIANT(laci_gate): laci_gate_avx2 where the build compiles for AVX2 (-DLACI_ISA=avx2). */
#define LACI_VARIANT(name) LACI_VARIANT_JOIN(name, LACI_ISA)
#define LACI_VARIANT_JOIN(name, isa) LACI_VARIANT_PASTE(name, isa)
#define LACI_VARIANT_PASTE(name, isa) name##_##isa

#endif
