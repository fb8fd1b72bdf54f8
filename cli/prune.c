/* SPDX-License-Identifier: Apache-2.0
 * `lacuna prune`: permutes, prunes, verifies and saves a network, with --calibration on sample
 * data. */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "input.h"
#include "lacuna/calibration.h"
#include "lacuna/quantization.h"
#include "lacuna/report.h"
#include "log.h"
#include "pipeline.h"

enum { MOST_PIXELS = 16384, MOST_COPIES = 1000 };

/* How a network is calibrated: not at all, on DATA, on synthetic images, on both, or on synthetic
 * ones only if the network takes what can be drawn and pruning gets better by it. */
typedef enum plan { NEVER, ON_DATA, ON_BOTH, ON_SYNTHETIC, ON_SYNTHETIC_IF_BETTER } plan;

static bool is_quantized_at_run_time(const arguments *args) {
  return args->quantize && strcmp(args->quantize, "dynamic-int8") == 0;
}

/* Returns the name of an option that was given and that needs calibration; NULL: there is none. */
static const char *find_option_that_needs_calibration(const arguments *args) {
  const struct {
    const char *name;
    bool given;
  } needs[] = {{"quantize", args->given.quantize && !is_quantized_at_run_time(args)},
               {"calibration-samples", args->given.calibration_samples},
               {"calibration-constant", args->given.calibration_constant},
               {"calibration-copies", args->given.calibration_copies},
               {"solve", args->given.solve && args->solve},
               {"mean", args->given.mean},
               {"std", args->given.std},
               {"resize", args->given.resize},
               {"crop", args->given.crop},
               {"keep-dense", args->given.keep_dense},
               {"max-drop", args->given.max_drop},
               {"curve", args->given.curve},
               {"recalibrate", args->given.recalibrate},
               {"refine", args->given.refine},
               {"refine-steps", args->given.refine_steps}};
  for (size_t k = 0; k < sizeof needs / sizeof *needs; k++)
    if (needs[k].given) return needs[k].name;
  return NULL;
}

/* Was a score given that needs no inputs of the network, such as --score magnitude? */
static bool is_score_without_samples(const arguments *args) {
  return args->score && !input_score_needs_samples(args->score);
}

/* Chooses how to calibrate. If no option asks for calibration, one that needs it enables it;
 * otherwise the network is calibrated if that improves it. */
static lac_status choose_calibration_plan(const arguments *args, plan *how, lac_error *err) {
  const char *wants = find_option_that_needs_calibration(args);
  *how = NEVER;
  if (args->calibration && args->no_calibration) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--calibration %s and --no-calibration: wanted one",
                     args->calibration);
  }
  if (args->calibration_synthetic && (!args->calibration || input_calibration_is_synthetic(args))) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--calibration-synthetic: it goes with --calibration DATA");
  }
  if (args->calibration) {
    *how = input_calibration_is_synthetic(args) ? ON_SYNTHETIC
           : args->calibration_synthetic        ? ON_BOTH
                                                : ON_DATA;
  } else if (args->no_calibration && wants) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--%s: it goes with --calibration DATA", wants);
  } else if (!args->no_calibration && (wants || !is_score_without_samples(args))) {
    *how = wants || args->score ? ON_SYNTHETIC : ON_SYNTHETIC_IF_BETTER;
  }
  return LAC_OK;
}

static lac_status read_calibration_options(const arguments *args, lac_calibration *c, plan *how,
                                           lac_error *err) {
  *c = lac_calibration_default();
  lac_status st = choose_calibration_plan(args, how, err);
  if (!st)
    st = input_check_number("calibration-samples", args->calibration_samples, 1, INT32_MAX, err);
  if (!st)
    st = input_check_number("calibration-copies", args->calibration_copies, 0, MOST_COPIES, err);
  if (!st) st = input_check_number("resize", args->resize, 0, MOST_PIXELS, err);
  if (!st) st = input_check_number("crop", args->crop, 0, MOST_PIXELS, err);
  if (!st) st = input_check_number("keep-dense", args->keep_dense, 0, INT32_MAX, err);
  if (!st) st = input_check_number("refine-steps", args->refine_steps, 0, INT32_MAX, err);
  if (!st && args->mean) st = input_parse_colour("mean", args->mean, c->mean, err);
  if (!st && args->std) st = input_parse_colour("std", args->std, c->std, err);
  const bool drawn = *how == ON_SYNTHETIC || *how == ON_SYNTHETIC_IF_BETTER;
  c->synthetic = drawn || *how == ON_BOTH;
  c->optional = *how == ON_SYNTHETIC_IF_BETTER;
  c->data = drawn ? NULL : args->calibration;
  c->samples = (int64_t)args->calibration_samples;
  if (drawn && !args->given.calibration_samples) c->samples = 0;
  c->constants = args->calibration_constant.items;
  c->n_constants = args->calibration_constant.n;
  c->copies = (int)args->calibration_copies;
  c->solve = args->solve;
  c->resize = (int)args->resize;
  c->crop = (int)args->crop;
  c->keep_dense = (int)args->keep_dense;
  if (args->given.max_drop) c->max_drop = args->max_drop;
  c->curve = args->curve != NULL;
  c->recalibrate = args->recalibrate;
  c->refine = args->refine;
  c->refine_steps = (int64_t)args->refine_steps;
  return st;
}

static lac_status read_quantization_options(const arguments *args, lac_quantization *q,
                                            lac_error *err) {
  const char *lone = args->given.quantize_range         ? "quantize-range"
                     : args->given.quantize_activations ? "quantize-activations"
                                                        : NULL;
  *q = lac_quantization_default();
  q->format = args->quantize;
  q->range = args->quantize_range;
  q->is_signed = strcmp(args->quantize_activations, "int8") == 0;
  if (!lone || (args->quantize && !is_quantized_at_run_time(args))) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "--%s: it goes with --quantize qdq-int8", lone);
}

/* Logs which inputs the network was calibrated on, if no data were given. */
static void log_choice_without_data(const arguments *args, const lac_report *report) {
  const lac_calibration_result *c = report->calibration;
  if (args->calibration || !c || !c->synthetic) return;
  log_line("no data given: calibrated on %.*s; --no-calibration prunes by magnitude",
           (int)strcspn(c->data, ","), c->data);
}

static lac_status prune_model(const arguments *args, const lac_options *options, lac_model *model,
                              lac_report **report, lac_error *err) {
  lac_calibration calibration;
  lac_quantization quantization;
  lac_options how = *options;
  plan chosen;
  lac_status st = read_calibration_options(args, &calibration, &chosen, err);
  if (!st) st = read_quantization_options(args, &quantization, err);
  if (chosen != NEVER) how.calibration = &calibration;
  how.correct = args->solve;
  if (args->quantize) how.quantization = &quantization;
  if (!st) st = lac_prune(model, &how, report, err);
  if (!st) log_choice_without_data(args, *report);
  return st;
}

exit_code verb_prune(const arguments *args, lac_error *err) {
  lac_calibration checked;
  lac_quantization ignored;
  plan chosen;
  lac_status st =
      read_calibration_options(args, &checked, &chosen, err); /* checked before the model is read */
  if (!st) st = read_quantization_options(args, &ignored, err);
  return st ? exit_code_of_status(st) : pipeline_run_verb(args, prune_model, err);
}
