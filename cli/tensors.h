/* SPDX-License-Identifier: Apache-2.0
 * `lacuna inspect` of a file of tensors without a network: safetensors, and those of PyTorch. */
#ifndef CLI_TENSORS_H
#define CLI_TENSORS_H

#include "verbs.h"

/** Does MODEL name a file of tensors without a network? */
bool tensors_are_given(const arguments *args);

/** Does the work of `lacuna inspect` for a file of tensors. */
exit_code tensors_inspect(const arguments *args, lac_error *err);

#endif
