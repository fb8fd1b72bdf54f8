/* SPDX-License-Identifier: Apache-2.0
 * Reads the model (from a file or from standard input) and translates options. */
#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "group.h"
#include "lacuna/engine.h"
#include "lacuna/process_group.h"

enum { MOST_RANK = 8 };

/* Reads all of standard input into memory of laci_alloc. */
static lac_status read_stdin(uint8_t **bytes, size_t *size_bytes, lac_error *err) {
  size_t capacity = 1 << 20;
  *size_bytes = 0;
  *bytes = laci_alloc(capacity, 1);
  while (*bytes) {
    *size_bytes += fread(*bytes + *size_bytes, 1, capacity - *size_bytes, stdin);
    if (ferror(stdin)) return laci_fail(err, LAC_IO, "standard input: %s", strerror(errno));
    if (*size_bytes < capacity) return LAC_OK;
    uint8_t *larger = laci_resize(*bytes, capacity, capacity * 2, 1);
    if (!larger) break;
    *bytes = larger;
    capacity *= 2;
  }
  return laci_fail_memory(err, "standard input");
}

/* Does read_stdin for all processes of a group: process 0 reads and sends the bytes to the others,
 * since launchers connect standard input to process 0 only. */
static lac_status read_shared_stdin(const arguments *args, uint8_t **bytes, size_t *size_bytes,
                                    lac_error *err) {
  bool reads = group_is_first_process(args);
  *bytes = NULL;
  lac_status st = reads ? read_stdin(bytes, size_bytes, err) : LAC_OK;
  if (!args->group) return st;
  st = group_agree_on_status_without_timeout(args, st, err);
  if (!st) st = lac_process_group_broadcast(args->group, size_bytes, sizeof *size_bytes, err);
  if (st) return st;
  if (!reads) *bytes = laci_alloc(*size_bytes, 1);
  st = group_agree_on_status(args, *bytes ? LAC_OK : laci_fail_memory(err, "standard input"), err);
  return st ? st : lac_process_group_broadcast(args->group, *bytes, *size_bytes, err);
}

/* Folds weights that are computed from constants into stored tensors. bench and --fold fold all
 * such weights; other verbs fold those whose constants nothing else reads. infer and eval do not
 * fold, nor does pack, which must be able to restore its file. check folds only on request, since
 * it reports what is in the file. */
static lac_status fold_model(const arguments *args, lac_model *model, lac_error *err) {
  const bool asked = args->given.fold && args->fold;
  const bool all = args->verb == VERB_bench || asked;
  if (!args->fold || args->verb == VERB_pack || args->verb == VERB_infer || args->verb == VERB_eval)
    return LAC_OK;
  if (args->verb == VERB_check && !asked) return LAC_OK;
  return lac_model_fold(model, all ? LAC_FOLD_ALL : LAC_FOLD_ALONE, args->max_memory, NULL, NULL,
                        err);
}

static lac_status read_model(const arguments *args, const char *path, lac_model **model,
                             lac_error *err) {
  lac_load_options options = {.size = sizeof(lac_load_options), .lenient = args->lenient};
  *model = NULL;
  if (strcmp(path, "-") != 0) return lac_model_load(path, &options, model, err);
  uint8_t *bytes = NULL;
  size_t size_bytes = 0;
  lac_status st = read_shared_stdin(args, &bytes, &size_bytes, err);
  if (!st) {
    options.bytes = bytes;
    options.size_bytes = size_bytes;
    st = lac_model_load(NULL, &options, model, err);
    if (st) st = laci_fail_with_prefix(err, st, "standard input");
  }
  laci_free(bytes);
  return st;
}

lac_status input_load_model(const arguments *args, const char *path, lac_model **model,
                            lac_error *err) {
  lac_status st = read_model(args, path, model, err);
  if (!st) st = fold_model(args, *model, err);
  if (!st) return LAC_OK;
  lac_model_destroy(*model);
  *model = NULL;
  return st;
}

lac_status input_parse_shape(const char *text, laci_arena *arena, lac_engine_shape *shape,
                             lac_error *err) {
  const char *equals = strrchr(text, '=');
  bool good = equals && equals != text && equals[1];
  for (const char *at = good ? equals + 1 : ""; good && *at;) {
    char *digits_end = NULL;
    long long size = *at == '?' ? -1 : strtoll(at, &digits_end, 10);
    const char *end = *at == '?' ? at + 1 : digits_end;
    bool digits = *at == '?' || (*at >= '0' && *at <= '9');
    good = digits && size <= INT32_MAX && shape->rank < MOST_RANK &&
           (*end == 0 || (*end == 'x' && end[1]));
    if (good) shape->shape[shape->rank++] = size;
    at = *end ? end + 1 : end;
  }
  if (!good) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--input-shape %s: wanted NAME=1x3x224x224, at most %d sizes", text,
                     MOST_RANK);
  }
  shape->name = laci_arena_text_n(arena, text, (size_t)(equals - text));
  return shape->name ? LAC_OK : laci_fail_memory(err, "the command line");
}

lac_status input_parse_pattern(const char *text, int *n, int *m, lac_error *err) {
  int used = 0;
  if (strspn(text, "0123456789:") != strlen(text) || sscanf(text, "%2d:%2d%n", n, m, &used) != 2 ||
      text[used] || *n < 1 || *n >= *m || *m > 64) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--pattern %s: wanted N:M with 1 <= N < M <= 64, such as 2:4", text);
  }
  return LAC_OK;
}

bool input_score_needs_samples(const char *score) {
  return !laci_ends_with(score, ".npz") && strcmp(score, "magnitude") != 0 &&
         strcmp(score, "random") != 0;
}

/* Parses the pattern "64:2:8" (V:N:M) or "2:4" (N:M). */
static lac_status read_pattern(const arguments *args, lac_options *options, lac_error *err) {
  const char *text = args->pattern, *colon = strchr(text, ':');
  int used = 0;
  if (!colon || !strchr(colon + 1, ':'))
    return input_parse_pattern(text, &options->n, &options->m, err);
  bool good = strspn(text, "0123456789:") == strlen(text) &&
              sscanf(text, "%4d:%2d:%2d%n", &options->v, &options->n, &options->m, &used) == 3 &&
              !text[used] && options->v >= 1 && options->v <= 4096 && options->n >= 1 &&
              options->n <= 4 && options->n < options->m && options->m >= 4 && options->m <= 64;
  if (!good) {
    return laci_fail(
        err, LAC_BAD_ARGUMENT,
        "--pattern %s: wanted V:N:M with 1 <= V <= 4096, 1 <= N <= 4, N < M and 4 <= M <= "
        "64, such as 64:2:8",
        text);
  }
  if (args->verb == VERB_pack) {
    return laci_fail(
        err, LAC_BAD_ARGUMENT,
        "--pattern %s: wanted N:M; rows are packed by themselves, and these hold %d:%d", text,
        options->n, options->m);
  }
  return LAC_OK;
}

lac_status input_read_prune_options(const arguments *args, lac_options *options, lac_error *err) {
  *options = lac_options_default();
  options->permute = args->permute;
  options->padding = args->padding;
  options->all_sizes = args->all_sizes;
  options->recurrent = args->recurrent;
  options->verify = args->verify;
  options->include = args->include;
  options->exclude = args->exclude;
  options->score = args->score;
  options->permute_for = args->permute_for;
  options->mask = args->mask;
  if (args->verb != VERB_prune && args->score && input_score_needs_samples(args->score)) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "--score %s: wanted magnitude, random or FILE.npz (prune knows others)",
                     args->score);
  }
  options->effort = strcmp(args->effort, "fast") == 0   ? LAC_EFFORT_FAST
                    : strcmp(args->effort, "best") == 0 ? LAC_EFFORT_BEST
                                                        : LAC_EFFORT_NORMAL;
  options->strategy = args->strategy;
  options->time_limit = args->time_limit;
  options->seed = args->seed;
  options->threads = args->threads;
  options->max_memory = args->max_memory;
  const bool runs =
      args->verb == VERB_prune || args->verb == VERB_permute || args->verb == VERB_check;
  if (runs)
    options->engine = args->engine; /* other verbs set the engine in the options of the
                                               function that runs the network */
  options->group = args->group;
  options->assume = args->assume.items;
  options->n_assume = args->assume.n;
  options->input_shapes = args->input_shape.items;
  options->n_input_shapes = args->input_shape.n;
  options->targets = args->target.items;
  options->n_targets = args->target.n;
  if (args->given.speed) options->speed = args->speed;
  return read_pattern(args, options, err);
}

lac_status input_parse_colour(const char *name, const char *text, float colour[3], lac_error *err) {
  const char *at = text;
  for (int c = 0; c < 3; c++) {
    char *end;
    colour[c] = strtof(at, &end);
    if (end == at || *end != (c < 2 ? ',' : 0)) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "--%s %s: wanted R,G,B in grey levels, such as 123.675,116.28,103.53", name,
                       text);
    }
    at = end + 1;
  }
  return LAC_OK;
}

lac_status input_check_number(const char *name, uint64_t value, uint64_t least, uint64_t most,
                              lac_error *err) {
  if (value >= least && value <= most) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "--%s %" PRIu64 ": wanted an integer from %" PRIu64 " to %" PRIu64, name, value,
                   least, most);
}

bool input_calibration_is_synthetic(const arguments *args) {
  return args->calibration && strcmp(args->calibration, "synthetic") == 0;
}
