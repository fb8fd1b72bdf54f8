/* SPDX-License-Identifier: Apache-2.0
 * Completes what the command line said: by a configuration file, and by the name of the result
 * where -o is not given, which is that of MODEL with another ending, next to it. */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "args.h"

/** Completes the arguments that arguments_parse read; script: the script that --like names; NULL:
 * no --like. Fails as config_apply_file does, and LAC_BAD_ARGUMENT for a missing operand,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status arguments_complete_from_files(arguments *args, const char *script,
                                                        lac_error *err);

#endif
