/* SPDX-License-Identifier: Apache-2.0
 * Adds, finds and removes the items of a `--like` translation: each is an option of this command
 * that an option of the script was translated to. */
#include "like_items.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

lac_status script_format_text(like *l, const char **text, lac_error *err, const char *format, ...) {
  va_list list;
  va_start(list, format);
  va_list again;
  va_copy(again, list);
  int n = vsnprintf(NULL, 0, format, list);
  char *made = n >= 0 && l->n_texts < LIKE_MOST_TEXTS ? laci_alloc((size_t)n + 1, 1) : NULL;
  if (made) (void)vsnprintf(made, (size_t)n + 1, format, again);
  va_end(again);
  va_end(list);
  *text = made;
  if (!made) return laci_fail_memory(err, "the command line");
  l->texts[l->n_texts++] = made;
  return LAC_OK;
}

like_item *script_find_item(like *l, const char *name) {
  for (int k = 0; k < l->n_items; k++) {
    if (strcmp(l->items[k].name, name) == 0) return &l->items[k];
  }
  return NULL;
}

const char *script_find_value(like *l, const char *name, const char *usual) {
  const like_item *item = script_find_item(l, name);
  return item && item->value ? item->value : usual;
}

lac_status script_set_option(like *l, const char *name, const char *value, const char *typed,
                             lac_error *err) {
  like_item *item = script_find_item(l, name);
  if (!item && l->n_items == LIKE_MOST) return laci_fail(err, LAC_BAD_ARGUMENT, "too many options");
  if (!item) item = &l->items[l->n_items++];
  *item = (like_item){.name = name, .value = value, .typed = typed};
  return LAC_OK;
}

lac_status script_add_note(like *l, const char *typed, const char *text, lac_error *err) {
  for (int k = 1; k < l->n_notes; k += 2) {
    if (strcmp(l->notes[k], text) == 0) return LAC_OK;
  }
  if (l->n_notes + 2 > LIKE_MOST) return laci_fail(err, LAC_BAD_ARGUMENT, "too many options");
  l->notes[l->n_notes++] = typed;
  l->notes[l->n_notes++] = text;
  return LAC_OK;
}

void script_remove_item(like *l, const char *name) {
  like_item *item = script_find_item(l, name);
  if (item) *item = l->items[--l->n_items];
}

bool script_has_own_option(const like *l, const char *name) {
  for (int k = 0; k < l->n_others; k++) {
    const option_row *option = option_find(l->verb, l->others[k]);
    if (option && strcmp(option_name_with_dashes(option->name), name) == 0) return true;
  }
  return false;
}

bool script_is_option_given(like *l, const char *name) {
  return script_find_item(l, name) || script_has_own_option(l, name);
}

lac_status script_set_default(like *l, const char *name, const char *value, lac_error *err) {
  return script_is_option_given(l, name) ? LAC_OK : script_set_option(l, name, value, NULL, err);
}

bool script_is_only_printed(const like *l) {
  return script_has_own_option(l, "print") || script_has_own_option(l, "help");
}

lac_status script_fail_value(like *l, const char *name, const char *wanted, lac_error *err) {
  const like_item *item = script_find_item(l, name);
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s %s: wanted %s", item->typed, item->value, wanted);
}

lac_status script_read_count(like *l, const char *name, uint64_t *count, lac_error *err) {
  const char *text = script_find_value(l, name, "");
  char *end;
  *count = strtoull(text, &end, 10);
  bool fits =
      text[0] >= '0' && text[0] <= '9' && !*end && *count >= 1 && *count <= INT64_MAX / 65536;
  return fits ? LAC_OK : script_fail_value(l, name, "an integer from 1 on", err);
}

/* ---- Choosing the network ---- */

bool script_is_in_list(const char *text, const char *const *list) {
  for (; *list; list++) {
    if (strcmp(*list, text) == 0) return true;
  }
  return false;
}

lac_status script_set_architecture(like *l, bool resnext, lac_error *err) {
  static const char *const sizes[] = {"18", "34", "50", "101", "152", NULL};
  static const char *const resnext_sizes[] = {"50", "101", NULL};
  const char *size = script_find_value(l, "*size", resnext ? "101" : "50"), *name;
  const like_item *given = script_find_item(l, resnext ? "*resnext" : "*size");
  if (l->verb == VERB_finetune) {
    if (!given) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: MODEL says which network is trained",
                     given->typed);
  }
  if (!script_is_in_list(size, resnext ? resnext_sizes : sizes)) {
    return script_fail_value(l, "*size",
                             resnext ? "50 or 101 of ResNeXt" : "18, 34, 50, 101 or 152", err);
  }
  lac_status st = script_format_text(l, &name, err, resnext ? "resnext%s_32x4d" : "resnet%s", size);
  return st ? st : script_set_default(l, "arch", name, err);
}

lac_status script_add_operand(like *l, const char *word, lac_error *err) {
  const char *copy;
  lac_status st = script_format_text(l, &copy, err, "%s", word);
  if (st) return st;
  if (l->n_operands == LIKE_MOST_WORDS) return laci_fail(err, LAC_BAD_ARGUMENT, "too many words");
  l->operands[l->n_operands++] = l->texts[l->n_texts - 1];
  return LAC_OK;
}
