/* SPDX-License-Identifier: Apache-2.0
 * Which processor this is, as its maker calls it. */
#ifndef LACI_CPU_MODEL_H
#define LACI_CPU_MODEL_H

enum { LACI_CPU_MODEL = 128 };

/** The name that the system tells, or its kind of processor where it tells none. */
void laci_cpu_model(char name[LACI_CPU_MODEL]);

#endif
