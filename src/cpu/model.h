/* SPDX-License-Identifier: Apache-2.0
 * Which processor this is, as its vendor calls it. */
#ifndef LACI_CPU_MODEL_H
#define LACI_CPU_MODEL_H

#include <stddef.h>

enum { LACI_CPU_MODEL = 128 };

/** Writes the name of the processor as the system reports it, or else the architecture. */
void laci_cpu_read_model(char name[LACI_CPU_MODEL]);

/** Writes the vendor by CPUID ("AuthenticAMD"), and the processor family in the vendor's numbering;
 * without CPUID "" and 0. */
void laci_cpu_read_vendor(char *vendor, size_t size, int *family);

#endif
