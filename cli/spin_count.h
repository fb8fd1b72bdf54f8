/* SPDX-License-Identifier: Apache-2.0
 * Limits how long the engine's threads spin (busily wait) while they wait for each other. */
#ifndef CLI_SPIN_COUNT_H
#define CLI_SPIN_COUNT_H

/** Executes the program again, once, with a low spin count in its environment. Returns if the user
 * has set a spin count, or if the program cannot be executed again. */
void spin_count_set_by_restart(char **argv);

#endif
