/* SPDX-License-Identifier: Apache-2.0
 * How long the threads of the engine spin while they wait for each other. */
#ifndef CLI_SPIN_COUNT_H
#define CLI_SPIN_COUNT_H

/** Makes the program start itself again, once, with a low spin count in its environment; returns
 * where its user has set one, or where starting again is not possible. */
void spin_count_set(char **argv);

#endif
