/* SPDX-License-Identifier: Apache-2.0
 * Reads the entries of a session's configuration that are meant for this provider. */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX "ep.lacunaexecutionprovider."

enum { KEY_BYTES = 64, VALUE_BYTES = 64, MOST_THREADS = 1024, MOST_PLANS = 100000 };

/** Copies the value of an entry to `value` [VALUE_BYTES]; empty: it is not set. */
static lac_status read_config_value(const laci_ort *ort, const ort_session_options *from,
                                    const char *key, char *value, lac_error *err) {
  int has = 0;
  size_t n = 0;
  value[0] = 0;
  lac_status st = laci_ort_take_failure(ort, ort->has_entry(from, key, &has), key, err);
  if (st || !has) return st;
  st = laci_ort_take_failure(ort, ort->entry(from, key, NULL, &n), key, err);
  if (!st && n > VALUE_BYTES)
    st = laci_ort_fail(err, LAC_BAD_ARGUMENT, "%s: a value of %zu characters", key, n);
  if (!st) st = laci_ort_take_failure(ort, ort->entry(from, key, value, &n), key, err);
  value[VALUE_BYTES - 1] = 0;
  return st;
}

static lac_status read_option_text(const laci_ort *ort, const ort_session_options *from,
                                   const char *name, char *value, lac_error *err) {
  char key[KEY_BYTES];
  (void)snprintf(key, sizeof key, PREFIX "%s", name);
  return read_config_value(ort, from, key, value, err);
}

static lac_status fail_bad_value(const char *name, const char *value, const char *wanted,
                                 lac_error *err) {
  return laci_ort_fail(err, LAC_BAD_ARGUMENT, PREFIX "%s: \"%s\", wanted %s", name, value, wanted);
}

static lac_status read_switch(const laci_ort *ort, const ort_session_options *from,
                              const char *name, bool *to, lac_error *err) {
  char value[VALUE_BYTES];
  lac_status st = read_option_text(ort, from, name, value, err);
  if (st || !*value) return st;
  *to = strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0;
  if (*to || strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0) return LAC_OK;
  return fail_bad_value(name, value, "0 or 1", err);
}

/** Parses an integer of at most `most`. sizes: it may end with K, M or G. Returns false if it is no
 * such number. */
static bool parse_number(const char *value, bool sizes, uint64_t most, uint64_t *to) {
  char *end = NULL;
  int shift = 0;
  if (*value < '0' || *value > '9') return false;
  errno = 0;
  unsigned long long n = strtoull(value, &end, 10);
  if (sizes && (*end == 'K' || *end == 'M' || *end == 'G'))
    shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
  if (errno || *end || n > most >> shift) return false;
  *to = (uint64_t)n << shift;
  return true;
}

static lac_status read_number(const laci_ort *ort, const ort_session_options *from,
                              const char *name, int most, int *to, lac_error *err) {
  char value[VALUE_BYTES], wanted[64];
  uint64_t n = 0;
  lac_status st = read_option_text(ort, from, name, value, err);
  if (st || !*value) return st;
  (void)snprintf(wanted, sizeof wanted, "a number from 0 to %d", most);
  if (!parse_number(value, false, (uint64_t)most, &n))
    return fail_bad_value(name, value, wanted, err);
  *to = (int)n;
  return LAC_OK;
}

lac_status laci_ort_options_read(laci_ort_options *options, const laci_ort *ort,
                                 const ort_session_options *from, lac_error *err) {
  char value[VALUE_BYTES];
  *options = (laci_ort_options){.dtype = LAC_DTYPE_F32};
  lac_status st = read_switch(ort, from, "all", &options->all, err);
  if (!st) st = read_switch(ort, from, "verbose", &options->verbose, err);
  if (!st) st = read_number(ort, from, "threads", MOST_THREADS, &options->threads, err);
  if (!st) st = read_number(ort, from, "plans", MOST_PLANS, &options->plans, err);
  if (!st) st = read_option_text(ort, from, "dtype", value, err);
  if (st) return st;
  if (strcmp(value, "bf16") == 0) {
    options->dtype = LAC_DTYPE_BF16;
  } else if (*value && strcmp(value, "f32") != 0) {
    return fail_bad_value("dtype", value, "f32 or bf16", err);
  }
  st = read_option_text(ort, from, "pool", value, err);
  if (st) return st;
  options->session_pool = strcmp(value, "session") == 0;
  if (*value && !options->session_pool && strcmp(value, "own") != 0)
    return fail_bad_value("pool", value, "session or own", err);
  st = read_config_value(ort, from, "session.intra_op.allow_spinning", value, err);
  options->spins = strcmp(value, "0") != 0;
  if (!st) st = read_option_text(ort, from, "memory", value, err);
  if (!st && *value && !parse_number(value, true, UINT64_MAX, &options->memory))
    st = fail_bad_value("memory", value, "bytes, or a number with K, M or G", err);
  return st;
}
