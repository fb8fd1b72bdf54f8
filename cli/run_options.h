/* SPDX-License-Identifier: Apache-2.0
 * Makes lac_run_options from the command line, for every verb that runs a network. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "lacuna/run.h"

typedef struct arguments arguments;

/** If --engine names a plug-in, loads it and sets args->engine to the name of the plug-in's engine.
 * Fails as lac_engine_load, and LAC_BAD_ARGUMENT where there is no engine of the name. */
LAC_MUST_CHECK lac_status run_options_load_engine_plugin(arguments *args, lac_error *err);

/** Returns the options for running a network: threads, type, memory, engine, sparse kernels,
 * tuning. Texts in them point into args; the path of the file with timings is valid until the next
 * call. */
lac_run_options run_options_from_arguments(const arguments *args);

#endif
