/* SPDX-License-Identifier: Apache-2.0
 * For each script of --like: its verb, its defaults, and options whose meaning depends on other
 * options. */
#ifndef CLI_LIKE_SCRIPTS_H
#define CLI_LIKE_SCRIPTS_H

#include "like.h"

/** Checks the script's name, and sets the verb that it becomes; has_verb: the command line has this
 * verb, which must be one of the script's. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status script_check_name(const char *script, bool has_verb, verb_id *verb,
                                            lac_error *err);

/** Completes the translation after all words were read: sets defaults, and options that depend on
 * several options of the script. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status script_complete_options(like *l, lac_error *err);

/** Prints the environment variables that the script reads, if there are any. */
void script_print_environment_variables(const char *script, FILE *out);

/** Parts of script_complete_options: for trainings that another program starts (like_runners.c),
 * and for scripts that train nothing (like_tools.c). */
LAC_MUST_CHECK lac_status script_complete_resnet_estimator(like *l, lac_error *err);
LAC_MUST_CHECK lac_status script_complete_resnet_keras(like *l, lac_error *err);
LAC_MUST_CHECK lac_status script_complete_demo_resnet_hvd(like *l, lac_error *err);
LAC_MUST_CHECK lac_status script_complete_preprocess_imagenet(like *l, lac_error *err);
LAC_MUST_CHECK lac_status script_complete_mn_check(like *l, lac_error *err);
LAC_MUST_CHECK lac_status script_complete_trt_accuracy(like *l, lac_error *err);
LAC_MUST_CHECK lac_status script_complete_tftrt_infer(like *l, lac_error *err);

#endif
