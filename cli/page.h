/* SPDX-License-Identifier: Apache-2.0
 * `--html`: an HTML page on what the command did, from its report, the command line and the
 * warnings that were logged. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdbool.h>

#include "lacuna/page.h"

/** Remembers the command line, which the page shows. Call it first, once. */
void page_record_command(int argc, char **argv);

/** Remembers a warning, which the page shows. Any thread may call it, one at a time; only the first
 * 100 warnings are remembered. */
void page_record_warning(const char *text);

typedef struct lac_train_event lac_train_event;

/** The events of a training, each as a JSON line of log.jsonl, from which the curves of a page are
 * drawn. */
typedef struct page_log page_log;

/** Adds an event of a training to *log, if it is an evaluation, or a step whose figures are
 * displayed; other events are ignored. *log is NULL before the first call, which creates it. */
void page_log_add(page_log **log, const lac_train_event *event);
/** Returns the lines so far as a JSON array, which the caller frees with laci_free; NULL for a log
 * of NULL. Fails LAC_NO_MEMORY, also if an earlier call could not store its event. */
LAC_MUST_CHECK lac_status page_log_to_json(page_log *log, char **text, lac_error *err);
void page_log_destroy(page_log *log);

/** Writes the page, and adds the command line and the warnings so far to it. page: all other
 * fields. Fails as lac_page_write does. */
LAC_MUST_CHECK lac_status page_write(const lac_page *page, const char *path, bool force,
                                     lac_error *err);

/** Inspects the model, for the drawing and the layers of a page whose verb makes no report of
 * layers. If that fails, *report is NULL, the page is written without them, and a warning says why.
 * n, m: the pattern N:M. The caller destroys *report. Fails LAC_INTERRUPTED and LAC_NO_MEMORY
 * alone. */
LAC_MUST_CHECK lac_status page_inspect_model(lac_model *model, int n, int m, lac_report **report,
                                             lac_error *err);

#endif
