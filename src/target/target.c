/* SPDX-License-Identifier: Apache-2.0
 * The table of targets (target.h). Finds a target by its name. */
#include "target/target.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

const laci_target *const laci_targets[] = {
#define LAC_TARGET(id, name) &laci_target_##id,
#include "target/target.def"
#undef LAC_TARGET
};

static const char *const names[] = {
#define LAC_TARGET(id, name) name,
#include "target/target.def"
#undef LAC_TARGET
};

enum { N_TARGETS = sizeof names / sizeof *names };

const char *const *laci_target_names(int *n) {
  if (n) *n = N_TARGETS;
  return names;
}

static const char *join_target_names(char *text, size_t size) {
  size_t n = 0;
  text[0] = 0;
  for (int t = 0; t < N_TARGETS && n < size; t++)
    n += (size_t)snprintf(text + n, size - n, "%s%s", t ? ", " : "", names[t]);
  return text;
}

/* Element types that a user may choose for a weight. */
static const lac_dtype types[] = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_I8};

static lac_status find_element_type(const char *text, const char *word, lac_dtype *as,
                                    lac_error *err) {
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    if (strcmp(word, lac_dtype_name(types[t])) != 0) continue;
    *as = types[t];
    return LAC_OK;
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "target %s: type %s, wanted f32, f16, bf16 or i8", text,
                   word);
}

lac_status laci_target_find(const char *text, laci_target_choice *choice, lac_error *err) {
  const char *colon = strchr(text, ':');
  const size_t length = colon ? (size_t)(colon - text) : strlen(text);
  char all[256];
  *choice = (laci_target_choice){.as = LAC_DTYPE_NONE};
  for (int t = 0; t < N_TARGETS; t++) {
    if (strlen(names[t]) != length || strncmp(names[t], text, length) != 0) continue;
    choice->name = names[t];
    choice->target = laci_targets[t];
  }
  if (!choice->target) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "target %s: wanted NAME or NAME:TYPE of %s", text,
                     join_target_names(all, sizeof all));
  }
  return colon ? find_element_type(text, colon + 1, &choice->as, err) : LAC_OK;
}

const char *laci_target_fault_name(laci_target_fault fault) {
  static const char *const words[] = {
      [LACI_FAULT_NONE] = NULL,           [LACI_FAULT_NEVER] = "target",
      [LACI_FAULT_OPERATOR] = "operator", [LACI_FAULT_TYPE] = "type",
      [LACI_FAULT_RANK] = "rank",         [LACI_FAULT_WINDOW] = "window",
      [LACI_FAULT_GROUPS] = "groups",     [LACI_FAULT_SHARED] = "shared",
      [LACI_FAULT_SIZE] = "size",         [LACI_FAULT_ZERO_POINT] = "zero point",
      [LACI_FAULT_PATTERN] = "pattern",   [LACI_FAULT_AXIS] = "axis",
      [LACI_FAULT_ZEROS] = "zeros",       [LACI_FAULT_PLAN] = "plan",
  };
  return words[fault];
}

const char *laci_target_source_text(const laci_target *target, const char *key,
                                    char text[LACI_TARGET_TEXT]) {
  text[0] = 0;
  for (int s = 0; s < target->n_sources; s++) {
    const laci_target_source *source = &target->sources[s];
    if (strcmp(source->key, key) == 0)
      (void)snprintf(text, LACI_TARGET_TEXT, "%s, %s", source->title, source->section);
  }
  return text;
}
