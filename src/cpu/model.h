/* SPDX-License-Identifier: Apache-2.0
 * Which processor this is, as its vendor calls it. */
#ifndef LACI_CPU_MODEL_H
#define LACI_CPU_MODEL_H

#include <stddef.h>

enum { LACI_CPU_MODEL = 128 };

/** Writes the processor's name as the system reports it, or else the name of the architecture. */
void laci_cpu_read_model(char name[LACI_CPU_MODEL]);

/** Writes the processor's vendor ("AuthenticAMD") and family, in the vendor's numbering, as CPUID
 * gives them; without CPUID "" and 0. */
void laci_cpu_read_vendor(char *vendor, size_t size, int *family);

#endif
