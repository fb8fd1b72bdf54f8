/* SPDX-License-Identifier: Apache-2.0
 * Structs that callers fill or receive, and whose size tells which fields they know
 * (lacuna/status.h). A function of the API copies a caller's struct into one of its own before it
 * reads a field, and copies a result back when it is complete.
 *
 * For each struct of structs.def, here shown for eval_options:
 *   laci_take_eval_options(given, own, err)   own: the caller's fields, and defaults (or zeros, if
 *     the struct has no defaults) for fields that it lacks. given NULL: all defaults. Fails
 *     LAC_BAD_ARGUMENT (size is 0, too small or absurd), LAC_UNSUPPORTED (a field that this library
 *     does not know is not zero)
 *   laci_check_struct_eval_options(given, err)   the same failures, without a copy
 *   laci_give_eval_options(own, given)   copies own into the caller's struct, as far as it
 *     goes; its size stays, and fields that this library does not know become zero */
#ifndef LACI_API_MODEL_STRUCTS_H
#define LACI_API_MODEL_STRUCTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

#define LAC_OPTIONS(name, last) LAC_SIZED_STRUCT(name, last)
#define LAC_SIZED_STRUCT(name, last)                                                           \
  typedef struct lac_##name lac_##name;                                                        \
  LAC_MUST_CHECK lac_status laci_take_##name(const lac_##name *given, lac_##name *own,         \
                                             lac_error *err);                                  \
  LAC_MUST_CHECK lac_status laci_check_struct_##name(const lac_##name *given, lac_error *err); \
  void laci_give_##name(const lac_##name *own, lac_##name *given);
#include "api/model/structs.def"
#undef LAC_SIZED_STRUCT
#undef LAC_OPTIONS

/** What the library knows of a struct type of its API. */
typedef struct laci_struct_type {
  const char *name;
  size_t size;       /* bytes of the struct in this library */
  size_t least;      /* bytes of the struct in the first version in which it had the member `size`;
                        fewer are refused */
  bool has_defaults; /* the public function NAME_default() exists */
} laci_struct_type;

/** Does the work of the functions above for a struct of any type. Before
 * laci_struct_copy_from_caller, `own` must hold the defaults. */
LAC_MUST_CHECK lac_status laci_struct_check(const laci_struct_type *type, const void *given,
                                            lac_error *err);
LAC_MUST_CHECK lac_status laci_struct_copy_from_caller(const laci_struct_type *type,
                                                       const void *given, void *own,
                                                       lac_error *err);
void laci_struct_copy_to_caller(const laci_struct_type *type, const void *own, void *given);

/** Initializes a caller's struct of options, of `size` bytes: copies the defaults, which have
 * own_size bytes, fills what is left with zeros, and stores `size` in the first field. Does nothing
 * if options is NULL, or if `size` does not include that field. */
void laci_struct_set_defaults(const void *defaults, size_t own_size, void *options, size_t size);

/* ---- Checks of fields that several structs have ---- */

typedef struct lac_context lac_context;
typedef struct lac_engine_shape lac_engine_shape;
typedef struct lac_run_options lac_run_options;

/** Checks that an enum's value is in [0, n). Fails LAC_BAD_ARGUMENT: "effort 99: wanted 0 to 2". */
LAC_MUST_CHECK lac_status laci_check_enum_value(const char *field, long long value, int n,
                                                lac_error *err);

/** Checks how networks are run: threads, type, tuning. Fails LAC_BAD_ARGUMENT, LAC_UNSUPPORTED (a
 * reserved byte is not 0). */
LAC_MUST_CHECK lac_status laci_check_run_options(const lac_run_options *run, lac_error *err);

/** Checks that each of a caller's shapes has a name and a valid rank. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_check_engine_shapes(const lac_engine_shape *shapes, int n,
                                                   lac_error *err);

/** Checks the option `threads`. Fails LAC_BAD_ARGUMENT: "threads 65537: wanted 0 (all cores) to
 * 1024". */
LAC_MUST_CHECK lac_status laci_check_threads(int threads, lac_error *err);

/* ---- The field `context` ---- */

/** Begins the call of a public function: makes the calling thread work in the context `wanted`,
 * which its options, arguments, engine or session give. NULL: the thread stays in the context of
 * the enclosing call, or in the process's. Returns the context before, which the call passes to
 * laci_call_leave_context at its end. */
lac_context *laci_call_enter_context(lac_context *wanted);
void laci_call_leave_context(lac_context *before);

#endif
