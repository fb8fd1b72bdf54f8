/* SPDX-License-Identifier: Apache-2.0
 * The library's version, which files that it writes contain, and what programs that were built with
 * other headers may expect of it. */
#include "lacuna/version.h"

#include "base/error.h"

#define TEXT(number) #number
#define DOTTED(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *lac_version(void) {
  return DOTTED(LAC_VERSION_MAJOR, LAC_VERSION_MINOR, LAC_VERSION_PATCH);
}

int lac_version_number(void) { return LAC_VERSION; }

/* Returns a number that is the same for all versions with the same soname. The soname has the major
 * number, and while that is 0, the minor number. */
static int soname_number_of_version(int version) {
  const int major = version / 10000;
  return major > 0 ? major * 100 : version / 100;
}

lac_status lac_version_check(int headers, lac_error *err) {
  if (headers >= 0 && headers <= LAC_VERSION &&
      soname_number_of_version(headers) == soname_number_of_version(LAC_VERSION)) {
    return LAC_OK;
  }
  return laci_fail(err, LAC_UNSUPPORTED,
                   "the program was built for version %d.%d.%d of lacuna, and the library is %s",
                   headers / 10000, headers / 100 % 100, headers % 100, lac_version());
}
