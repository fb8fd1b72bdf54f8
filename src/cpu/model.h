/* SPDX-License-Identifier: Apache-2.0
 * Which processor this is, as its maker calls it. */
#ifndef LACI_CPU_MODEL_H
#define LACI_CPU_MODEL_H

#include <stddef.h>

enum { LACI_CPU_MODEL = 128 };

/** The name that the system tells, or its kind of processor where it tells none. */
void laci_cpu_model(char name[LACI_CPU_MODEL]);

/** Its maker as CPUID has it ("AuthenticAMD") and the family that this counts it to; elsewhere "" and
 * 0. */
void laci_cpu_vendor(char *vendor, size_t size, int *family);

#endif
