/* SPDX-License-Identifier: Apache-2.0
 * The provider of one session. */
#ifndef LAC_ORT_EP_H
#define LAC_ORT_EP_H

#include "options.h"

/** Makes the provider of a session with these options, which are read. *made is NULL on failure. */
LAC_MUST_CHECK lac_status laci_ort_ep_create(const laci_ort *ort,
                                             const ort_session_options *options,
                                             const ort_logger *logger, ort_ep **made,
                                             lac_error *err);
/** Destroys a provider; NULL is fine. */
void laci_ort_ep_destroy(ort_ep *self);

#endif
