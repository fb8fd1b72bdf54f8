/* SPDX-License-Identifier: Apache-2.0
 * The log on standard error: what the library logs, and the progress of long work. */
#ifndef CLI_LOG_H
#define CLI_LOG_H

#include "args.h"

/** Logs what the library says from now on, as -q and -v say. On a terminal progress is a bar in the
 * last line; elsewhere it is a plain line every few seconds. */
void log_begin(const arguments *args);

/** Takes the bar away and logs no more. */
void log_end(void);

/** A line of the command's own, at the level of the library's plain information. */
void log_line(const char *format, ...) LAC_PRINTF(1, 2);

/** How fast a network ran, and how many of its layers by sparse kernels. */
void log_rate(double images_per_second, int n_sparse);

/** What is printed after the progress from now on, such as ", 100 images/s"; until the job's end.
 * */
void log_note(const char *format, ...) LAC_PRINTF(1, 2);

#endif
