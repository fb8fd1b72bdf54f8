/* SPDX-License-Identifier: Apache-2.0
 * How long the threads of the engine wait for each other with all their might. */
#ifndef LACUNA_CLI_PATIENCE_H
#define LACUNA_CLI_PATIENCE_H

/** Makes the program start itself again, once, with a short patience in its environment; returns
 * where its user has set one, or where starting again is not possible. */
void patience_settle(char **argv);

#endif
