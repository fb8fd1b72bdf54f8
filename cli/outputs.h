/* SPDX-License-Identifier: Apache-2.0
 * The files that one command writes, all of them or none: names are checked before the long work,
 * the contents go to temporary names next to them, and only when everything is there, standard
 * output included, they get their names (base/file_set.h). Every verb that writes goes
 *
 *     outputs_plan, outputs_guard; the work; outputs_begin or outputs_write; print; outputs_finish
 *
 * and calls outputs_finish in every case, with what failed, if anything did. */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include <limits.h>

#include "args.h"
#include "base/file_set.h"
#include "lacuna/prune.h"

typedef enum output_role {
  OUTPUT_MODEL,
  OUTPUT_EXPORT, /* the same network once more, by the name that --export-dir gives it */
  OUTPUT_PLOT,
  OUTPUT_ROOFLINE,
  OUTPUT_CURVE,
  OUTPUT_PERMUTATION,
  OUTPUT_TRACE,
  OUTPUT_COSTS,
  OUTPUT_JSON,
  OUTPUT_COUNT
} output_role;

typedef struct output_file {
  const char *path;    /* as given; NULL: not wanted */
  char real[PATH_MAX]; /* its folder resolved: what is compared with the other outputs */
} output_file;

typedef struct outputs {
  output_file files[OUTPUT_COUNT];
  bool force;
  bool writes_model; /* OUTPUT_MODEL is one: data files may go with it */
  bool has_data;     /* of the model that was written: it reads files next to it */
  bool uses_stdout;  /* one of them goes to standard output: nothing else may */
  const char
      *json; /* what goes to --json in the place of the report; the caller's; NULL: nothing */
  const char *trace;          /* what goes to --trace; the caller's */
  char export_path[PATH_MAX]; /* what OUTPUT_EXPORT's path is a view of */
  char folder[PATH_MAX];      /* of the export, where it is to be made with the file; else empty */
  laci_file_set set;          /* what was written, and waits for outputs_finish */
  bool begun;
} outputs;

/** Fills the caller's struct from args and checks: folders exist, names are free (unless --force),
 * none is an input and no two are the same. Fails LAC_EXISTS, LAC_IO, LAC_BAD_ARGUMENT. Nothing is
 * written. */
LAC_MUST_CHECK lac_status outputs_plan(const arguments *args, outputs *plan, lac_error *err);

/** The same for what only the loaded model knows: none of the files is one of those it was read
 * from (its external data, too), or will be taken by the data of the model that is written. input:
 * the model's path. Call it before the work. */
LAC_MUST_CHECK lac_status outputs_guard(const outputs *plan, const lac_model *model,
                                        const char *input, lac_error *err);

/** How a verb over one model begins: its options, outputs_plan, the model, outputs_guard. */
LAC_MUST_CHECK lac_status outputs_plan_and_load(const arguments *args, lac_options *options,
                                                outputs *plan, lac_model **model, lac_error *err);

/** And for the images of --data, or what --calibration names: none of the files that exist already
 * is one of theirs, or the list of classes. Fails LAC_NOT_FOUND, too, where they are not there. */
LAC_MUST_CHECK lac_status outputs_guard_data(const outputs *plan, const arguments *args,
                                             lac_error *err);

/** And for the folder of a training run (NULL: none): none takes a name that the run's own files
 * have there. */
LAC_MUST_CHECK lac_status outputs_guard_run(const outputs *plan, const char *model_dir,
                                            lac_error *err);

/** From now on all that the library writes waits for outputs_finish. For verbs whose files the
 * library writes by itself; outputs_write calls it. Zero-initialised is a plan, too. */
void outputs_begin(outputs *plan);

/** Writes them all; report and model are what the library made. */
LAC_MUST_CHECK lac_status outputs_write(outputs *plan, lac_model *model, const lac_report *report,
                                        lac_error *err);

/** Writes --json, where it is wanted: a file, or standard output. */
LAC_MUST_CHECK lac_status outputs_write_json(outputs *plan, const char *text, lac_error *err);

/** The same of --measure-costs. */
LAC_MUST_CHECK lac_status outputs_write_costs(outputs *plan, const char *text, lac_error *err);

/** Empties the buffer of standard output. Fails LAC_IO if anything could not be written. */
LAC_MUST_CHECK lac_status outputs_flush(lac_error *err);

/** The last step, after all that goes to standard output. st: how the verb went so far. Where all
 * went well, and standard output took all of it, the files get their names; else none is left, and
 * what was to be replaced is as it was. Returns st, or what failed here. */
LAC_MUST_CHECK lac_status outputs_finish(outputs *plan, lac_status st, lac_error *err);

/** The words for files that were written, "saved OUT, OUT.svg"; to the log. */
void outputs_log(const outputs *plan);

#endif
