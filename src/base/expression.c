/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions, by PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/expression.h"

#include <pcre2.h>

#include "base/memory.h"

/* Limits of the steps and of the memory of a match, and of the characters of an expression. A name
 * has a few hundred characters, so an expression that needs more than MOST_STEPS steps tries too
 * many combinations. */
enum { MOST_STEPS = 1000000, MOST_KIBIBYTES = 16 << 10, LONGEST = 4096 };

struct laci_expression {
  const char *what, *text;
  pcre2_code *code;
  pcre2_match_data *match;
  pcre2_match_context *limits;
};

static lac_status fail_with_pcre2_error(const laci_expression *e, int code, lac_error *err) {
  PCRE2_UCHAR why[256] = "";
  (void)pcre2_get_error_message(code, why, sizeof why);
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: \"%.80s\" is no usable regular expression: %s",
                   e->what, e->text, (const char *)why);
}

static lac_status compile_pattern(laci_expression *e, lac_error *err) {
  int code = 0;
  size_t at = 0;
  pcre2_compile_context *context = pcre2_compile_context_create(NULL);
  if (!context) return laci_fail_memory(err, e->what);
  (void)pcre2_set_max_pattern_length(context, LONGEST);
  e->code = pcre2_compile((PCRE2_SPTR)e->text, PCRE2_ZERO_TERMINATED, PCRE2_NO_AUTO_CAPTURE, &code,
                          &at, context);
  pcre2_compile_context_free(context);
  if (!e->code) return fail_with_pcre2_error(e, code, err);
  e->match = pcre2_match_data_create(1, NULL);
  e->limits = pcre2_match_context_create(NULL);
  if (!e->match || !e->limits) return laci_fail_memory(err, e->what);
  (void)pcre2_set_match_limit(e->limits, MOST_STEPS);
  (void)pcre2_set_heap_limit(e->limits, MOST_KIBIBYTES);
  return LAC_OK;
}

lac_status laci_expression_open(const char *what, const char *text, laci_expression **expression,
                                lac_error *err) {
  laci_expression *e = laci_alloc(1, sizeof *e);
  *expression = NULL;
  if (!e) return laci_fail_memory(err, what);
  e->what = what;
  e->text = text;
  lac_status st = compile_pattern(e, err);
  if (st) laci_expression_close(e);
  else *expression = e;
  return st;
}

void laci_expression_close(laci_expression *e) {
  if (!e) return;
  pcre2_match_context_free(e->limits);
  pcre2_match_data_free(e->match);
  pcre2_code_free(e->code);
  laci_free(e);
}

lac_status laci_expression_match(const laci_expression *e, const char *name, bool *found,
                                 lac_error *err) {
  const int code =
      pcre2_match(e->code, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0, 0, e->match, e->limits);
  *found = code >= 0;
  return code >= 0 || code == PCRE2_ERROR_NOMATCH ? LAC_OK : fail_with_pcre2_error(e, code, err);
}
