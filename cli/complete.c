/* SPDX-License-Identifier: Apache-2.0
 * Completes the arguments of a verb: names that result files have if -o is absent. net.onnx is
 * packed to net.lacuna or net-packed.onnx, and drawn to net.svg; net.lacuna is unpacked to
 * net.onnx. Verbs that change a network have no default: -o must name the result. */
#include "complete.h"

#include <stdio.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "config.h"

/* Returns the file name ending of the verb's result; NULL: the verb has no default name. */
static const char *find_ending_of_result(const arguments *args) {
  switch (args->verb) {
    case VERB_pack: return args->ort ? "-packed.onnx" : ".lacuna";
    case VERB_unpack: return ".onnx";
    case VERB_plot: return ".svg";
    default: return NULL;
  }
}

/* Returns the length of the file name without its ending, if that is one of networks or packs. */
static size_t count_stem_characters(const char *name) {
  static const char *const endings[] = {".onnx", ".lacuna", ".lac"};
  const size_t n = strlen(name);
  for (size_t k = 0; k < sizeof endings / sizeof endings[0]; k++) {
    const size_t length = strlen(endings[k]);
    if (n > length && laci_ends_with(name, endings[k])) return n - length;
  }
  return n;
}

/* Sets args->output of pack, unpack and plot if it was not given and MODEL is a file. */
static lac_status set_default_output(arguments *args, lac_error *err) {
  const char *ending = find_ending_of_result(args);
  const bool has_file = args->operand && strcmp(args->operand, "-") != 0;
  if (args->output || !ending || !has_file || args->help || args->print_config) return LAC_OK;
  const size_t stem = count_stem_characters(args->operand), size = stem + strlen(ending) + 1;
  args->named = laci_alloc(size, 1);
  if (!args->named) return laci_fail_memory(err, "the result's name");
  (void)snprintf(args->named, size, "%.*s%s", (int)stem, args->operand, ending);
  args->output = args->named;
  return LAC_OK;
}

lac_status arguments_complete_from_files(arguments *args, const char *script, lac_error *err) {
  lac_status st = LAC_OK;
  if (args->config && script)
    return laci_fail(err, LAC_BAD_ARGUMENT, "--config and --like: one of them");
  if (args->config && !args->help) st = config_apply_file(args, err);
  if (!st) st = arguments_check_operands(args, err);
  return st ? st : set_default_output(args, err);
}
