/* SPDX-License-Identifier: Apache-2.0
 * Tables of layers, and the summary lines below them, on standard output. */
#ifndef CLI_LAYERS_H
#define CLI_LAYERS_H

#include <stdio.h>

#include "args.h"
#include "lacuna/report.h"

/** Prints the table of prune and permute: layer, what was reordered, shape, share of kept
 * magnitude, remark. */
LAC_MUST_CHECK lac_status layers_print(const lac_report *report, FILE *out, lac_error *err);

/** Prints the table of inspect: as layers_print, but with what may be permuted. */
LAC_MUST_CHECK lac_status layers_print_movable(const lac_report *report, FILE *out, lac_error *err);

/** Prints the table of check: layer, operator, shape, structure, share of zeros, number of
 * non-zeros and of all elements, remark. */
LAC_MUST_CHECK lac_status layers_print_sparsity(const lac_report *report, FILE *out,
                                                lac_error *err);

/** Prints the lines "53/54 layers (Conv or Dense) are pruned" and "53/53 layers are permuted". */
void layers_print_pruned(const lac_report *report, FILE *out);
void layers_print_permuted(const lac_report *report, FILE *out);
/** Prints the line "53/53 layers may be permuted", for verbs that do not change the network. */
void layers_print_permutable(const lac_report *report, FILE *out);

/** Prints the results of calibration for the whole network; nothing without calibration. */
void layers_print_calibration(const lac_report *report, FILE *out);
/** Prints the results of quantization, and why layers were not quantized; nothing without
 * quantization. */
void layers_print_quantized(const lac_report *report, FILE *out);

/** Prints one line on what the verification compared, and what it could not compare. */
void layers_print_verification(const lac_summary *summary, FILE *out);

/** Prints how many weights were folded, and which option folds more; nothing if neither applies. */
void layers_print_folded(const arguments *args, const lac_report *report, FILE *out);
/** Prints one line on the kept magnitude and one on the verification. */
void layers_print_kept_magnitude(const lac_report *report, FILE *out);

#endif
