/* SPDX-License-Identifier: Apache-2.0
 * The log on standard error: what the library logs, and the progress of long work. */
#ifndef CLI_LOG_H
#define CLI_LOG_H

#include "args.h"

/** Starts to print the library's log, at the level of -q and -v. Progress is a bar in the last line
 * of a terminal; elsewhere a plain line every few seconds. */
void log_begin_printing(const arguments *args);

/** Removes the progress bar and stops logging. */
void log_end_printing(void);

/** Logs a line of the command, at the level LAC_LOG_INFO. */
void log_line(const char *format, ...) LAC_PRINTF(1, 2);

/** Logs how fast a network ran, and how many of its layers used sparse kernels. */
void log_images_per_second(double images_per_second, int n_sparse);

/** Sets the text after the progress bar, such as ", 100 images/s", until the job ends. */
void log_set_progress_note(const char *format, ...) LAC_PRINTF(1, 2);

#endif
