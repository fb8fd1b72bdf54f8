/* SPDX-License-Identifier: Apache-2.0
 * Loads the model that the command line names, and makes the library's options from those of the
 * command line. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "args.h"
#include "base/memory.h"
#include "lacuna/prune.h"

typedef struct lac_engine_shape lac_engine_shape;

/** Loads the model at path with the command line's options; "-" is standard input. *model is NULL
 * on failure. */
LAC_MUST_CHECK lac_status input_load_model(const arguments *args, const char *path,
                                           lac_model **model, lac_error *err);

/** Parses "NAME=1x3x224x224" of --input-shape; a size ? becomes -1 and keeps the model's size. The
 * name is copied to the arena. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_parse_shape(const char *text, laci_arena *arena,
                                            lac_engine_shape *shape, lac_error *err);

/** Parses "N:M" of --pattern. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_parse_pattern(const char *text, int *n, int *m, lac_error *err);

/** Fills the library's options from those of the command line; texts in them point into args. Fails
 * LAC_BAD_ARGUMENT for a malformed pattern, or a score that the verb does not know. */
LAC_MUST_CHECK lac_status input_read_prune_options(const arguments *args, lac_options *options,
                                                   lac_error *err);

/** Parses "R,G,B", the value of option --name. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_parse_colour(const char *name, const char *text, float colour[3],
                                             lac_error *err);

/** Checks that the value of option --name is within [least, most]. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_check_number(const char *name, uint64_t value, uint64_t least,
                                             uint64_t most, lac_error *err);

/** Does this score look at inputs of the network? */
bool input_score_needs_samples(const char *score);

/** Does --calibration ask for synthetic images? A folder of that name is given as ./synthetic. */
bool input_calibration_is_synthetic(const arguments *args);

#endif
