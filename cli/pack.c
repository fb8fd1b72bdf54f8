/* SPDX-License-Identifier: Apache-2.0
 * `lacuna pack` and `lacuna unpack`: pack the N:M weights of a network, and restore the network. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "input.h"
#include "lacuna/pack.h"
#include "outputs.h"
#include "table.h"
#include "terminal.h"
#include "verbs.h"

/* Plans the output files, and checks that their names are free. */
static lac_status plan_outputs(const arguments *args, outputs *plan, lac_error *err) {
  if (!args->output) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-o FILE is missing: where the result goes");
  }
  if (strcmp(args->output, "-") == 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--output -: this goes to a file only");
  }
  return outputs_plan_and_check(args, plan, err);
}

/* ---- pack ---- */

static lac_status print_layers(const lac_pack_report *report, lac_error *err) {
  text_table table = {0};
  table_begin(&table, "~layer|op|shape|type|structure|>dense bytes|>packed bytes|+");
  for (int l = 0; l < report->n_layers; l++) {
    const lac_pack_layer *layer = &report->layers[l];
    table_add_cell(&table, "%s", layer->name);
    table_add_cell(&table, "%s", layer->op);
    table_add_shape_cell(&table, layer->rank, layer->shape);
    table_add_cell(&table, "%s", lac_dtype_name(layer->dtype));
    if (layer->packed) table_add_cell(&table, "%d:%d", report->pattern_n, report->pattern_m);
    else table_add_cell(&table, "%s", layer->dense_bytes > 0 ? "dense" : "computed");
    table_add_cell(&table, "%" PRIu64, layer->dense_bytes);
    table_add_cell(&table, "%" PRIu64, layer->packed_bytes);
    table_add_cell(&table, "%s", layer->reason ? layer->reason : "");
  }
  lac_status st = table_print(&table, stdout, err);
  table_clear(&table);
  return st;
}

static lac_status print_result(const arguments *args, const lac_pack_report *report,
                               lac_error *err) {
  lac_status st = print_layers(report, err);
  if (st) return st;
  double share =
      report->dense_bytes ? (double)report->packed_bytes / (double)report->dense_bytes : 1;
  terminal_print_sentence(stdout, "%d weight%s packed %d:%d", report->n_packed,
                          laci_plural(report->n_packed), report->pattern_n, report->pattern_m);
  terminal_print_sentence(stdout,
                          "%s: %" PRIu64 " bytes, %.1f%% of the %" PRIu64 " it takes unpacked",
                          args->output, report->packed_bytes, 100 * share, report->dense_bytes);
  return LAC_OK;
}

static lac_status print_and_write_report(const arguments *args, outputs *plan,
                                         const lac_pack_report *report, lac_error *err) {
  char *text = NULL;
  lac_status st = plan->files[OUTPUT_JSON].path ? lac_pack_report_json(report, &text, err) : LAC_OK;
  if (!st && text) st = outputs_write_json(plan, text, err);
  lac_text_free(text);
  if (!st && !plan->uses_stdout) st = print_result(args, report, err);
  return st;
}

exit_code verb_pack(const arguments *args, lac_error *err) {
  lac_model *model = NULL;
  lac_pack_report *report = NULL;
  lac_options options;
  outputs plan = {0};
  lac_status st = input_read_prune_options(args, &options, err);
  if (!st) st = plan_outputs(args, &plan, err);
  if (!st) st = input_load_model(args, args->operand, &model, err);
  if (!st) st = outputs_check_against_model(&plan, model, args->operand, err);
  if (!st) {
    outputs_begin_file_set(&plan);
    st = args->ort ? lac_pack_save_context(model, args->output, &options, plan.force, &report, err)
                   : lac_pack_save(model, args->output, &options, plan.force, &report, err);
  }
  if (!st) st = print_and_write_report(args, &plan, report, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  lac_pack_report_destroy(report);
  lac_model_destroy(model);
  return exit_code_of_status(st);
}

/* ---- unpack ---- */

exit_code verb_unpack(const arguments *args, lac_error *err) {
  outputs plan = {0};
  lac_status st = plan_outputs(args, &plan, err);
  if (!st) {
    outputs_begin_file_set(&plan);
    st = lac_pack_restore(args->operand, args->output, plan.force, NULL, err);
  }
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) outputs_log(&plan);
  return exit_code_of_status(st);
}
