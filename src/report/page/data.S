/* SPDX-License-Identifier: Apache-2.0
 * The parts of the page as bytes, of the files in this folder. The scripts are one text. */
  .section .rodata
#define BEGIN(symbol) \
  .global symbol ; \
  .hidden symbol ; \
symbol:
#define END(symbol) \
  .global symbol ; \
  .hidden symbol ; \
symbol: ; \
  .byte 0

  BEGIN(laci_page_head)
  .incbin "head.html"
  END(laci_page_head_end)
  BEGIN(laci_page_style)
  .incbin "page.css"
  END(laci_page_style_end)
  BEGIN(laci_page_body)
  .incbin "body.html"
  END(laci_page_body_end)
  BEGIN(laci_page_script)
  .incbin "begin.js"
  .incbin "verdict.js"
  .incbin "table.js"
  .incbin "graph.js"
  .incbin "curves.js"
  .incbin "page.js"
  END(laci_page_script_end)
  BEGIN(laci_page_tail)
  .incbin "tail.html"
  END(laci_page_tail_end)
  .section .note.GNU-stack, "", %progbits
