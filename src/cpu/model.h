/* SPDX-License-Identifier: Apache-2.0
 * Which processor this is, as its vendor calls it. */
#ifndef LACI_CPU_MODEL_H
#define LACI_CPU_MODEL_H

#include <stddef.h>

enum { LACI_CPU_MODEL = 128 };

/** The name that the system tells, or its kind of processor where it tells none. */
void laci_cpu_model(char name[LACI_CPU_MODEL]);

/** Its vendor by CPUID ("AuthenticAMD") and its family by the vendor's count; without CPUID "" and
 * 0. */
void laci_cpu_vendor(char *vendor, size_t size, int *family);

#endif
