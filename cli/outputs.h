/* SPDX-License-Identifier: Apache-2.0
 * The files that one command writes, all of them or none: names are checked before the long work,
 * the contents go to temporary names beside them, and only when everything is there they get their
 * names. */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include <limits.h>

#include "args.h"
#include "lacuna/prune.h"

typedef enum output_role {
  OUTPUT_MODEL,
  OUTPUT_EXPORT, /* the same network once more, by the name that --export-dir gives it */
  OUTPUT_PLOT,
  OUTPUT_PERMUTATION,
  OUTPUT_JSON,
  OUTPUT_COUNT
} output_role;

typedef struct output_file {
  const char *path;         /* as given; NULL: not wanted */
  char real[PATH_MAX];      /* its folder resolved: what is compared with the other outputs */
  char temporary[PATH_MAX]; /* empty: there is none (any more) */
  bool placed;              /* it stands under its name */
} output_file;

typedef struct outputs {
  output_file files[OUTPUT_COUNT];
  bool force;
  bool writes_model; /* OUTPUT_MODEL is one: data files may go with it */
  bool uses_stdout;  /* one of them goes to standard output: nothing else may */
  const char
      *json; /* what goes to --json in the place of the report; the caller's; NULL: nothing */
  char export_path[PATH_MAX]; /* what OUTPUT_EXPORT's path is a view of */
  char folder[PATH_MAX];      /* of the export, where it is to be made with the file; else empty */
  bool made_folder;
} outputs;

/** Fills the caller's struct from args and checks: folders exist, names are free (unless --force),
 * none is an input and no two are the same. Fails LAC_EXISTS, LAC_IO, LAC_BAD_ARGUMENT. Nothing is
 * written. */
LAC_MUST_CHECK lac_status outputs_plan(const arguments *args, outputs *plan, lac_error *err);

/** The same for what only the loaded model tells: none of the files is one of those it was read
 * from (its external data, too), or will be taken by the data of the model that is written. input:
 * the model's path. Call it before the work. */
LAC_MUST_CHECK lac_status outputs_guard(const outputs *plan, const lac_model *model,
                                        const char *input, lac_error *err);

/** And for the images of --data: none of the files that exist already is one of theirs, or the list
 * of classes. Fails LAC_NOT_FOUND, too, where the folder is not there. */
LAC_MUST_CHECK lac_status outputs_guard_data(const outputs *plan, const arguments *args,
                                             lac_error *err);

/** And for the folder of a training run (NULL: none): none takes a name that the run's own files
 * have there. */
LAC_MUST_CHECK lac_status outputs_guard_run(const outputs *plan, const char *model_dir,
                                            lac_error *err);

/** Writes them all; report and model are what the library made. On failure no file is left that was
 * not there. */
LAC_MUST_CHECK lac_status outputs_write(outputs *plan, lac_model *model, const lac_report *report,
                                        lac_error *err);

/** The last step, after all that goes to standard output: where that could not be written, the
 * files go too. Fails LAC_IO. */
LAC_MUST_CHECK lac_status outputs_finish(outputs *plan, lac_error *err);

/** Removes the temporary files of the plan that is being written. Safe in a signal handler. */
void outputs_abandon(void);

/** The words for files that were written, "saved OUT, OUT.svg"; to the story. */
void outputs_tell(const outputs *plan);

#endif
