/* SPDX-License-Identifier: Apache-2.0
 * Completes the arguments of the command line. Options that are missing are read from a
 * configuration file. If -o is missing, the result gets MODEL's path with another ending. */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "args.h"

/** Completes the arguments that arguments_parse read; script: name of the script given to --like;
 * NULL: no --like. Fails as config_apply_file does, and LAC_BAD_ARGUMENT for a missing operand,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status arguments_complete_from_files(arguments *args, const char *script,
                                                        lac_error *err);

#endif
