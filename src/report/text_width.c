/* SPDX-License-Identifier: Apache-2.0
 * Estimates text widths (text_width.h) with a table. It has the advance width of each printable
 * ASCII character of DejaVu Sans 2.37, in thousandths of the font's height, rounded up. Kerning can
 * only make text narrower. Other characters count as wide as the widest character. */
#include "report/text_width.h"

#include <stddef.h>
#include <stdint.h>

#include "base/utf8.h"

enum { FIRST = 0x20, LAST = 0x7E, OTHER = 1120 };

static const short regular[LAST - FIRST + 1] = {
    318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361,  318, 337, 637, 637, 637,
    637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531, 1000, 685, 687, 699, 771, 632,
    576, 775, 752, 295, 295, 656, 558, 863, 749, 788, 604, 788, 695, 635,  611, 732, 685, 989, 686,
    611, 686, 391, 337, 391, 838, 500, 500, 613, 635, 550, 635, 616, 353,  635, 634, 278, 278, 580,
    278, 975, 634, 612, 635, 635, 412, 521, 393, 634, 592, 818, 592, 592,  525, 637, 337, 637, 838};

static const short boldface[LAST - FIRST + 1] = {
    349,  457, 521, 838, 696, 1002, 873, 307,  458, 458, 523, 838, 380, 416,  380, 366,
    696,  696, 696, 696, 696, 696,  696, 696,  696, 696, 400, 400, 838, 838,  838, 581,
    1000, 774, 763, 734, 831, 684,  684, 821,  837, 373, 373, 775, 638, 996,  837, 851,
    733,  851, 771, 721, 683, 813,  774, 1104, 771, 725, 726, 458, 366, 458,  838, 500,
    500,  675, 716, 593, 716, 679,  436, 716,  712, 343, 343, 666, 343, 1042, 712, 688,
    716,  716, 494, 596, 479, 712,  652, 924,  646, 652, 583, 712, 366, 712,  838};

double laci_text_width(const char *text, double size, bool bold) {
  const short *widths = bold ? boldface : regular;
  double sum = 0;
  while (*text) {
    uint32_t code = 0;
    size_t n = laci_utf8_next(text, &code);
    sum += n && code >= FIRST && code <= LAST ? widths[code - FIRST] : OTHER;
    text += n ? n : 1;
  }
  return sum * size / 1000;
}
