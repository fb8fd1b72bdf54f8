/* SPDX-License-Identifier: Apache-2.0
 * The command as one of several processes (mpirun, srun). Verbs that are long work are done by all
 * together, the others by process 0 alone. Only process 0 prints, logs and writes files: the
 * standard output of the others is nowhere, and their plans of outputs are empty. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include "args.h"

/** Is there nothing to do, since process 0 does it alone? */
bool group_is_idle(const arguments *args);

/** Where the verb is done by all: joins the others, in args->group. st: how reading the command
 * line ended; one that failed ends all. */
LAC_MUST_CHECK lac_status group_open(arguments *args, lac_status st, lac_error *err);

/** Does this process print, log and write? Process 0 does. */
bool group_speaks(const arguments *args);

/** How many processes there are; 1: this one works alone. */
int group_size(const arguments *args);

/** All processes come here at the same places of a verb, with what failed, if anything did, and
 * leave with the same. What they all know already is not told again. */
LAC_MUST_CHECK lac_status group_agree(const arguments *args, lac_status st, lac_error *err);

/** The same after work on files, which may take one process much longer than the others: waits for
 * as long as the others live. As the last step of a verb only where all went well in the library:
 * what failed there ended alike, or others may be anywhere. */
LAC_MUST_CHECK lac_status group_agree_late(const arguments *args, lac_status st, lac_error *err);

/** Is it this process that says what failed? Where the others do not know, its number is put before
 * the text; where one was lost, or the group could not be joined, process 0 says so, and others
 * only where it does not end them. */
bool group_says(const arguments *args, lac_error *err);

/** The last step, after all was said: it may not return. */
void group_close(arguments *args, lac_status ended);

#endif
