/* SPDX-License-Identifier: Apache-2.0
 * The files that one command writes, all of them or none. Names are checked before the long work,
 * and contents are written under temporary names in the same folders. When everything was written,
 * standard output included, the files are renamed (base/file_set.h). Every verb that writes files
 * calls
 *
 *     outputs_plan_and_check, outputs_check_against_model; the work; outputs_begin_file_set or
 * outputs_write; print; outputs_rename_or_remove
 *
 * and it calls outputs_rename_or_remove in any case, with the status so far. */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include <limits.h>

#include "args.h"
#include "base/file_set.h"
#include "lacuna/prune.h"

typedef enum output_role {
  OUTPUT_MODEL,
  OUTPUT_EXPORT, /* a second copy of the network, at the path that --export-dir defines */
  OUTPUT_PLOT,
  OUTPUT_ROOFLINE,
  OUTPUT_CURVE,
  OUTPUT_PERMUTATION,
  OUTPUT_TRACE,
  OUTPUT_COSTS,
  OUTPUT_PAGE,
  OUTPUT_JSON,
  OUTPUT_COUNT
} output_role;

typedef struct output_file {
  const char *path; /* path as given on the command line; NULL: this output is not wanted */
  char real
      [PATH_MAX]; /* path with all links in its folder resolved, to compare it with other paths */
} output_file;

typedef struct outputs {
  output_file files[OUTPUT_COUNT];
  bool force;
  bool writes_model; /* OUTPUT_MODEL is a network, next to which external data files may be written
                        */
  bool has_data;     /* the model that was written has external data files */
  bool uses_stdout;  /* one output goes to standard output, where nothing else may be printed then
                        */
  const char *json;  /* JSON text for --json, which replaces that of the report; owned by the
                        caller; NULL: the report's is written */
  const char *trace; /* JSON text for the file of --trace; owned by the caller */
  struct page_log *log;       /* events of a training, for the curves of --html; NULL: none so
                                 far */
  char export_path[PATH_MAX]; /* the path of OUTPUT_EXPORT, to which files[OUTPUT_EXPORT].path
                                 points */
  char folder[PATH_MAX];      /* folder of OUTPUT_EXPORT if it has to be created; else empty */
  laci_file_set set;          /* the files that outputs_rename_or_remove renames */
  bool begun;
  bool all_nodes, details; /* what the drawing shows: --all-nodes, --details */
} outputs;

/** Fills plan from args and checks it: folders exist, names are free (unless --force), no output is
 * an input, and no two outputs are the same. Writes nothing. Fails LAC_EXISTS, LAC_IO,
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status outputs_plan_and_check(const arguments *args, outputs *plan,
                                                 lac_error *err);

/** Checks the outputs against the loaded model: none is a file that the model was read from
 * (external data included), or has the name of an external data file that will be written. input:
 * the model's path. Call it before the long work. */
LAC_MUST_CHECK lac_status outputs_check_against_model(const outputs *plan, const lac_model *model,
                                                      const char *input, lac_error *err);

/** The first steps of a verb with one model: makes the library's options, calls
 * outputs_plan_and_check, loads the model, calls outputs_check_against_model. */
LAC_MUST_CHECK lac_status outputs_plan_and_load(const arguments *args, lac_options *options,
                                                outputs *plan, lac_model **model, lac_error *err);

/** Checks that no output would replace a file of --data or --calibration, or the list of classes.
 * Fails LAC_NOT_FOUND, too, if these inputs do not exist. */
LAC_MUST_CHECK lac_status outputs_check_against_data(const outputs *plan, const arguments *args,
                                                     lac_error *err);

/** Checks that no output has the name of a file that the training run itself writes in its folder
 * (NULL: none). */
LAC_MUST_CHECK lac_status outputs_check_against_run_folder(const outputs *plan,
                                                           const char *model_dir, lac_error *err);

/** From now on all files that the library writes keep temporary names until
 * outputs_rename_or_remove. For verbs whose files the library writes itself; outputs_write calls
 * it, too. plan may be zero-initialized. */
void outputs_begin_file_set(outputs *plan);

/** Writes all outputs of the plan, from the model and report that the library made. */
LAC_MUST_CHECK lac_status outputs_write(outputs *plan, lac_model *model, const lac_report *report,
                                        lac_error *err);

/** Writes text to the file of --json or to standard output, if --json was given. */
LAC_MUST_CHECK lac_status outputs_write_json(outputs *plan, const char *text, lac_error *err);

typedef struct lac_train_event lac_train_event;

/** If --html was given, keeps a training's event for the curves of the page: an evaluation, or a
 * step whose figures are displayed. */
void outputs_add_event_to_page(outputs *plan, const lac_train_event *event);

/** If --html was given, writes its page. report: the verb's report as JSON text; NULL: `layers` is
 * the report. layers: the model's layers, for the page's table and drawing; NULL: none. */
LAC_MUST_CHECK lac_status outputs_write_page(outputs *plan, const char *report,
                                             const lac_model *model, const lac_report *layers,
                                             lac_error *err);

/** Writes text to the file of --measure-costs or to standard output. */
LAC_MUST_CHECK lac_status outputs_write_costs(outputs *plan, const char *text, lac_error *err);

/** Flushes standard output. Fails LAC_IO if anything could not be written. */
LAC_MUST_CHECK lac_status outputs_flush(lac_error *err);

/** The last step, after everything was printed to standard output. st: the verb's status so far. If
 * it is LAC_OK and standard output could be written, renames the files; else removes them, and
 * existing files are unchanged. Returns st, or the failure of this step. */
LAC_MUST_CHECK lac_status outputs_rename_or_remove(outputs *plan, lac_status st, lac_error *err);

/** Logs the names of the written files: "saved OUT, OUT.svg". */
void outputs_log(const outputs *plan);

#endif
