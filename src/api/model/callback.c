/* SPDX-License-Identifier: Apache-2.0 */
#include "api/model/callback.h"

#include <string.h>

#include "base/error.h"

lac_status laci_callback_copy_error(lac_status status, const lac_error *said, const char *name,
                                    const char *function, lac_error *err) {
  const lac_status st = status > LAC_OK && status < LAC_STATUS_COUNT ? status : LAC_IO;
  if (!memchr(said->text, '\0', sizeof said->text) || !said->text[0]) {
    return laci_fail(err, st, "%s: %s failed: %s", name, function, lac_status_text(st));
  }
  return laci_hint(err, said->hint, laci_fail(err, st, "%s: %s", name, said->text));
}
