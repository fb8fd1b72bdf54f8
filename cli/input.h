/* SPDX-License-Identifier: Apache-2.0
 * From the command line to the library: the model that is read, and its options. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "args.h"
#include "base/memory.h"
#include "lacuna/engine.h"
#include "lacuna/prune.h"

/** Loads the model at path as the options say; - is standard input. *model is NULL on failure. */
LAC_MUST_CHECK lac_status input_model(const arguments *args, const char *path, lac_model **model,
                                      lac_error *err);

/** "NAME=1x3x224x224" of --input-shape; ? is a size that is left as it comes. The name goes to the
 * arena. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_shape(const char *text, laci_arena *arena, lac_engine_shape *shape,
                                      lac_error *err);

/** "N:M" of --pattern. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_pattern(const char *text, int *n, int *m, lac_error *err);

/** The library's options from the command line's; views of args. Fails LAC_BAD_ARGUMENT on a
 * malformed pattern, and on a score that the verb does not know. */
LAC_MUST_CHECK lac_status input_options(const arguments *args, lac_options *options,
                                        lac_error *err);

/** "R,G,B" of option --name. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_colour(const char *name, const char *text, float colour[3],
                                       lac_error *err);

/** An option that counts, inside its limits; else LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status input_check_number(const char *name, uint64_t value, uint64_t least,
                                             uint64_t most, lac_error *err);

#endif
