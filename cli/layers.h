/* SPDX-License-Identifier: Apache-2.0
 * What the verbs say about layers: tables and closing lines on standard output. */
#ifndef CLI_LAYERS_H
#define CLI_LAYERS_H

#include <stdio.h>

#include "args.h"
#include "lacuna/report.h"

/** prune, permute: layer, what was reordered, shape, share of kept magnitude, remark. */
LAC_MUST_CHECK lac_status layers_print(const lac_report *report, FILE *out, lac_error *err);

/** inspect: the same with what may be permuted. */
LAC_MUST_CHECK lac_status layers_print_free(const lac_report *report, FILE *out, lac_error *err);

/** check: layer, operator, shape, structure, share of zeros, non-zeros of all elements, remark. */
LAC_MUST_CHECK lac_status layers_print_sparsity(const lac_report *report, FILE *out,
                                                lac_error *err);

/** "53/54 layers (Conv or Dense) are pruned" and "53/53 layers are permuted". */
void layers_print_pruned(const lac_report *report, FILE *out);
void layers_print_permuted(const lac_report *report, FILE *out);
/** Where only the network as it is now is known: "53/53 layers may be permuted". */
void layers_print_permutable(const lac_report *report, FILE *out);

/** What calibration found of the network as a whole; nothing where there was none. */
void layers_print_calibration(const lac_report *report, FILE *out);
/** The same of quantization, and why a layer was not. */
void layers_print_quantized(const lac_report *report, FILE *out);

/** What was compared, and what could not be; in every case a line says which. */
void layers_print_verification(const lac_summary *summary, FILE *out);

/** A line where weights were folded, and one that says how more can be. */
void layers_print_folded(const arguments *args, const lac_report *report, FILE *out);
/** Kept and verified, one line each. */
void layers_print_figures(const lac_report *report, FILE *out);

#endif
