/* SPDX-License-Identifier: Apache-2.0
 * ONNX Runtime's functions by name, conversion of its failures to ours and back, and its log. Next:
 * ort.h, slots.def. */
#ifndef LAC_ORT_TABLE_H
#define LAC_ORT_TABLE_H

#include "lacuna/status.h"
#include "ort.h"

/** The functions that are called. */
typedef struct laci_ort {
#define LAC_ORT_SLOT(place, name, result, arguments) result(*name) arguments;
#include "slots.def"
#undef LAC_ORT_SLOT
  /* From the table of functions for providers: */
  ort_status *(*create_device)(ort_factory *factory, const ort_device *device,
                               const ort_pairs *metadata, const ort_pairs *options,
                               ort_ep_device **made);
  void (*release_device)(ort_ep_device *device);
  ort_status *(*fuse_nodes)(ort_support *support, const ort_node *const *nodes, size_t n,
                            const ort_fusion *how);
  /* NULL where ONNX Runtime is older than 1.25: */
  ort_status *(*create_event)(int kind, int32_t process, int32_t thread, const char *name,
                              int64_t begin_us, int64_t us, const char *const *keys,
                              const char *const *values, size_t n, ort_event **made);
  void (*release_event)(ort_event *event);
  ort_status *(*add_events)(ort_events *to, const ort_event *const *events, size_t n);
  /* NULL where ONNX Runtime is older than 1.24: */
  bool (*has_shape)(const ort_shape *shape);
  int release; /* minor version of ONNX Runtime: 28 for 1.28; 0: not known */
} laci_ort;

/** Fills *ort. Fails LAC_UNSUPPORTED where the table lacks a function, which the text names. The
 * functions before it are filled in, so that the failure can be passed to ONNX Runtime. */
LAC_MUST_CHECK lac_status laci_ort_fill_table(laci_ort *ort, const ort_base *base, lac_error *err);

/** Fails, with a text. err may be NULL. */
lac_status laci_ort_fail(lac_error *err, lac_status status, const char *format, ...)
    LAC_PRINTF(3, 4);
lac_status laci_ort_fail_memory(lac_error *err);

/** Converts ONNX Runtime's status to ours, and releases it: LAC_OK for NULL, else a failure whose
 * text is `doing` and that of ONNX Runtime. */
LAC_MUST_CHECK lac_status laci_ort_take_failure(const laci_ort *ort, ort_status *status,
                                                const char *doing, lac_error *err);
/** Converts our status to a new one of ONNX Runtime; NULL for LAC_OK. */
ort_status *laci_ort_make_status(const laci_ort *ort, lac_status status, const lac_error *err);

/** Returns ONNX Runtime's status for a call that lacks a needed argument. */
ort_status *laci_ort_fail_missing(const laci_ort *ort, const char *call);

/** Logs a line, with "Lacuna: " before it. logger may be NULL. */
void laci_ort_log(const laci_ort *ort, const ort_logger *logger, int level, const char *format, ...)
    LAC_PRINTF(4, 5);

#endif
