/* SPDX-License-Identifier: Apache-2.0
 * `--config FILE` and `--print-config`: the options of a verb by their long names, in YAML or JSON.
 * What the command line says counts more than what the file says. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include <stdio.h>

#include "args.h"

/** Reads the options that the command line did not give from the file args->config. Texts in args
 * point into the tree that was read. Fails LAC_BAD_ARGUMENT for an unknown option, a value of the
 * wrong type, and an option that occurs twice; each text begins with the file and the line. Fails
 * as tree_read_file does, too. */
LAC_MUST_CHECK lac_status config_apply_file(arguments *args, lac_error *err);

/** Writes the verb, its operands and all its options as YAML, which --config reads again. Options
 * that were not given are written as comments, and so are the settings that follow from a
 * training's recipe. Fails if options of a training contradict each other. */
LAC_MUST_CHECK lac_status config_print_yaml(const arguments *args, FILE *out, lac_error *err);

#endif
