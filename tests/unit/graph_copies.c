/* SPDX-License-Identifier: Apache-2.0
 * Values that are copies of others, and what lies between integers and the QuantizeLinear that
 * computed them. */
#include "graph/copies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "support/graph_build.h"

static laci_graph *read_net(const char *text) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static int value_of(const laci_graph *graph, const char *name) {
  for (int v = 0; v < graph->n_values; v++) {
    if (strcmp(graph->values[v].name, name) == 0) return v;
  }
  fail_msg("no value %s", name);
  return -1;
}

#define INPUTS "input x 2x3\nstored s \"\" = 0.1\nstored z \"\" u8 = 9\nstored low \"\" u8 = 4\n"

static void copies_lead_to_what_they_are_copies_of(void **state) {
  static const struct {
    const char *text, *value, *from;
  } nets[] = {
      {"y = Identity(x)\n", "y", "x"},
      {"a = Identity(x)\ny = Identity(a)\n", "y", "x"},
      {"y = Cast(x) to=1\n", "y", "x"},
      {"y = Cast(x) to=2\n", "y", "y"},
      {"q = QuantizeLinear(x, s, z)\ny = Cast(q) to=2\n", "y", "q"},
      {"q = QuantizeLinear(x, s, z)\ny = Cast(q) to=3\n", "y", "y"},
      {"q = QuantizeLinear(x, s)\ny = Cast(q) to=2\n", "y", "q"},
      {"w = Identity(z)\nq = QuantizeLinear(x, s, w)\nc = Clip(q, low)\ny = Cast(c) to=2\n", "y",
       "c"},
      {"y = Relu(x)\n", "y", "y"},
  };
  char text[512];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    (void)snprintf(text, sizeof text, INPUTS "%soutput y\n", nets[at].text);
    laci_graph *graph = read_net(text);
    const int found = laci_graph_skip_copies(graph, value_of(graph, nets[at].value));
    assert_string_equal(graph->values[found].name, nets[at].from);
    laci_graph_destroy(graph);
  }
}

static void integers_lead_to_their_quantizer(void **state) {
  static const struct {
    const char *text;
    bool found, clipped;
  } nets[] = {
      {"y = QuantizeLinear(x, s, z)\n", true, false},
      {"q = QuantizeLinear(x, s, z)\ny = Cast(q) to=2\n", true, false},
      {"q = QuantizeLinear(x, s, z)\nc = Clip(q, low)\ny = Identity(c)\n", true, true},
      {"q = QuantizeLinear(x, s, z)\nc = Clip(q, low)\ny = Clip(c, low)\n", false, true},
      {"q = QuantizeLinear(x, s, z)\ny = Cast(q) to=6\n", false, false},
      {"y = Cast(x) to=2\n", false, false},
      {"y = Clip(x, s)\n", false, false},
  };
  char text[512];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    int clip;
    (void)snprintf(text, sizeof text, INPUTS "%soutput y\n", nets[at].text);
    laci_graph *graph = read_net(text);
    const int found = laci_graph_find_quantizer(graph, value_of(graph, "y"), &clip);
    assert_int_equal(found >= 0, nets[at].found);
    assert_int_equal(clip >= 0, nets[at].clipped);
    laci_graph_destroy(graph);
  }
}

static void a_clip_keeps_zero_points_inside_its_bounds(void **state) {
  static const struct {
    const char *bounds;
    bool keeps;
  } nets[] = {
      {"stored l \"\" u8 = 9\nstored h \"\" u8 = 9\n", true},
      {"stored l \"\" u8 = 0\nstored h \"\" u8 = 8\n", false},
      {"stored l \"\" u8 = 10\nstored h \"\" u8 = 255\n", false},
      {"input l \"\" u8\nstored h \"\" u8 = 255\n", false},
  };
  char text[512];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    (void)snprintf(text, sizeof text,
                   INPUTS "%sq = QuantizeLinear(x, s, z)\ny = Clip(q, l, h)\noutput y\n",
                   nets[at].bounds);
    laci_graph *graph = read_net(text);
    const laci_node *clip = &graph->nodes[graph->values[value_of(graph, "y")].producer];
    assert_int_equal(laci_clip_keeps_zero_points(graph, clip, value_of(graph, "z")),
                     nets[at].keeps);
    laci_graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_lead_to_what_they_are_copies_of),
      cmocka_unit_test(integers_lead_to_their_quantizer),
      cmocka_unit_test(a_clip_keeps_zero_points_inside_its_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
