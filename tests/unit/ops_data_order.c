/* SPDX-License-Identifier: Apache-2.0
 * Operators that convert (Cast, quantization, Dropout), and those to which the order along an axis
 * matters: TopK, ArgMax, CumSum, Trilu, NonZero ... */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

#define X23 "stored x 2x3 = 1 2 3 4 5 6\n"

static const op_case casts[] = {
    {"floats are truncated", "stored x 4 = 1.7 -1.7 0.5 300\ny = Cast(x) to=7\noutput y",
     "y i64 4 = 1 -1 0 300", "a -> a"},
    {"integers wrap around", "stored x 3 i64 = 300 -1 127\ny = Cast(x) to=3\noutput y",
     "y i8 3 = 44 -1 127", "a -> a"},
    {"bool is not zero", "stored x 3 = 0 0.5 -2\ny = Cast(x) to=9\noutput y", "y bool 3 = 0 1 1",
     NULL},
    {"integers to floats", "stored x 2 i64 = 3 -4\ny = Cast(x) to=1\noutput y", "y f32 2 = 3 -4",
     NULL},
    {"to half precision, rounded once",
     "stored x 5 f64 = 0.1 65519 65520 1e-9 -2049\ny = Cast(x) to=10\noutput y",
     "y f16 5 = 0.0999756 65504 inf 0 -2048", NULL},
    {"to half precision and back, as any float",
     "stored x 2 = 0.1 -3.14159\nh = Cast(x) to=10\ny = Cast(h) to=1\noutput y",
     "y f32 2 = 0.0999756 -3.14062", "a -> a"},
    {"to bf16 and back", "stored x 2 = 0.1 257\nh = Cast(x) to=16\ny = Cast(h) to=1\noutput y",
     "y f32 2 = 0.100098 256", NULL},
    {"integers beyond a float's mantissa", "stored x 1 i64 = 16777217\ny = Cast(x) to=1\noutput y",
     "y f32 1 = 1.67772e+07", NULL},
    {"a float product as an integer is the float's",
     "stored x 1 = 100\nstored c 1 = 0.29\nm = Mul(x, c)\ny = Cast(m) to=7\noutput y",
     "y i64 1 = 29", NULL},
    {"to 8 bits, the largest where it is too large",
     "stored x 5 = 1000 -1000 0.3 17 0.001\ny = Cast(x) to=17\noutput y",
     "y f8e4m3fn 5 = 448 -448 0.3125 16 0.00195312", NULL},
    {"to 8 bits, infinite where that is wanted",
     "stored x 2 = 1e6 57344\ny = Cast(x) to=19 saturate=0\noutput y", "y f8e5m2 2 = inf 57344",
     NULL},
    {"to 4 bits", "stored x 4 = 7 8 -9 3.7\ny = Cast(x) to=22\noutput y", "y i4 4 = 7 -8 7 3",
     NULL},
    {"to powers of two", "stored x 3 = 1.1 3 4\ny = Cast(x) to=24 round_mode=\"down\"\noutput y",
     "y f8e8m0 3 = 1 2 4", NULL},
    {"like another tensor", "stored x 2 = 1.5 2.5\nstored t 3 i32\ny = CastLike(x, t)\noutput y",
     "y i32 2 = 1 2", "a b -> a"},
    {"identity", X23 "y = Identity(x)\noutput y", "y f32 2x3 = 1 2 3 4 5 6", "ab -> ab"},
    {"dropout passes all", X23 "y, m = Dropout(x)\noutput y\noutput m",
     "y f32 2x3 = 1 2 3 4 5 6\nm bool 2x3 = 1 1 1 1 1 1", "ab -> ab cd"},
    {"an old dropout's mask",
     "opset 7\nstored x 2 = 5 6\ny, m = Dropout(x) ratio=0.5\noutput y\noutput m",
     "y f32 2 = 5 6\nm f32 2 = 1 1", "a -> a b"},
};

static void casts_convert_every_element(void **state) {
  (void)state;
  check_cases(casts, sizeof casts / sizeof *casts);
}

static const op_case quants[] = {
    {"one scale",
     "stored x 2x2 i8 = 0 1 2 -3\nstored s \"\" = 0.5\ny = DequantizeLinear(x, s)\noutput y",
     "y f32 2x2 = 0 0.5 1 -1.5", "ab s -> ab"},
    {"a scale for each row",
     "stored x 2x2 u8 = 0 1 2 3\nstored s 2 = 1 10\nstored z 2 u8 = 1 2\n"
     "y = DequantizeLinear(x, s, z) axis=0\noutput y",
     "y f32 2x2 = -1 0 0 10", "ab a a -> ab"},
    {"a list of one scale is for all",
     "stored x 2x2 i8 = 0 1 2 3\nstored s 1 = 2\ny = DequantizeLinear(x, s) axis=0\noutput y",
     "y f32 2x2 = 0 2 4 6", "ab c -> ab"},
    {"half to even, and held in range",
     "stored x 5 = 0.5 1.5 2.5 -0.5 1000\nstored s \"\" = 1\ny = QuantizeLinear(x, s)\noutput y",
     "y u8 5 = 0 2 2 0 255", "a s -> a"},
    {"signed, with zero points",
     "stored x 1x2 = 1 -1\nstored s 2 = 0.01 0.5\nstored z 2 i8 = 0 3\n"
     "y = QuantizeLinear(x, s, z) axis=1\noutput y",
     "y i8 1x2 = 100 1", "ab b b -> ab"},
    {"a scale for each block of two, the last one short",
     "stored x 2x3 i8 = 0 1 2 3 4 5\nstored s 2x2 = 1 2 10 20\nstored z 2x2 i8 = 0 1 0 0\n"
     "y = DequantizeLinear(x, s, z) axis=1 block_size=2\noutput y",
     "y f32 2x3 = 0 1 2 30 40 100", "a. a. a. -> a."},
    {"blocks along the first axis",
     "stored x 3x1 = 2 4 -9\nstored s 2x1 = 1 2\n"
     "y = QuantizeLinear(x, s) axis=-2 block_size=2 output_dtype=3\noutput y",
     "y i8 3x1 = 2 4 -4", ".a .a -> .a"},
};

static void quantization_follows_its_axis(void **state) {
  (void)state;
  check_cases(quants, sizeof quants / sizeof *quants);
}

static const op_case orders[] = {
    {"states before the steps, of sequences of several lengths",
     "stored y 3x1x2x1 = 1 2 3 4 5 6\nstored h 1x2x1 = 10 20\nstored l 2 i32 = 3 2\n"
     "s = RecurrentStates(y, h, l) domain=\"lacuna\"\noutput s",
     "s f32 3x2x1x1 = 10 20 1 2 3 0", NULL},
    {"states before the steps, of both directions",
     "stored y 2x2x1x1 = 1 2 3 4\n"
     "s = RecurrentStates(y) direction=\"bidirectional\" domain=\"lacuna\"\noutput s",
     "s f32 2x1x2x1 = 0 4 1 0", NULL},
    {"states before the steps, backward, the batch first",
     "stored y 1x2x1x2 = 1 2 3 4\nstored h 1x1x2 = 8 9\n"
     "s = RecurrentStates(y, h) direction=\"reverse\" layout=1 domain=\"lacuna\"\noutput s",
     "s f32 2x1x1x2 = 3 4 8 9", NULL},
    {"the two largest", X23 "stored k 1 i64 = 2\nv, i = TopK(x, k)\noutput v\noutput i",
     "v f32 2x2 = 3 2 6 5\ni i64 2x2 = 2 1 2 1", "a. . -> a. a."},
    {"the smallest, first of equal ones",
     "stored x 4 i32 = 2 1 1 3\nstored k 1 i64 = 3\nv, i = TopK(x, k) largest=0\noutput v\noutput "
     "i",
     "v i32 3 = 1 1 2\ni i64 3 = 1 2 0", ". . -> . ."},
    {"k as attribute, along axis 0",
     "opset 9\n" X23 "v, i = TopK(x) k=1 axis=0\noutput v\noutput i",
     "v f32 1x3 = 4 5 6\ni i64 1x3 = 1 1 1", ".a -> .a .a"},
    {"argmax keeps its axis", X23 "y = ArgMax(x) axis=1\noutput y", "y i64 2x1 = 2 2", "a. -> ab"},
    {"argmin drops it", X23 "y = ArgMin(x) axis=0 keepdims=0\noutput y", "y i64 3 = 0 0 0",
     ".a -> a"},
    {"the last of equal ones",
     "stored x 3 = 5 5 1\ny = ArgMax(x) select_last_index=1 keepdims=0\noutput y", "y i64 s = 1",
     ". -> s"},
    {"running sums", X23 "stored a \"\" i64 = 1\ny = CumSum(x, a)\noutput y",
     "y f32 2x3 = 1 3 6 4 9 15", "a. s -> a."},
    {"without itself, from the back",
     X23 "stored a \"\" i64 = -1\ny = CumSum(x, a) exclusive=1 reverse=1\noutput y",
     "y f32 2x3 = 5 3 0 11 6 0", "a. s -> a."},
    {"the upper triangle", "stored x 2x2x2 = 1 2 3 4 5 6 7 8\ny = Trilu(x)\noutput y",
     "y f32 2x2x2 = 1 2 0 4 5 6 0 8", "a.. -> a.."},
    {"the lower one, strictly",
     "stored x 2x3 = 1 2 3 4 5 6\nstored k \"\" i64 = -1\ny = Trilu(x, k) upper=0\noutput y",
     "y f32 2x3 = 0 0 0 4 0 0", ".. s -> .."},
    {"sequences reversed",
     "stored x 3x2 = 1 2 3 4 5 6\nstored n 2 i64 = 3 2\ny = ReverseSequence(x, n)\noutput y",
     "y f32 3x2 = 5 4 3 2 1 6", ".. . -> .."},
    {"sequences in rows",
     X23 "stored n 2 i64 = 1 3\ny = ReverseSequence(x, n) batch_axis=0 time_axis=1\noutput y",
     "y f32 2x3 = 1 2 3 6 5 4", NULL},
    {"one hot",
     "stored i 3 i64 = 1 -1 7\nstored d \"\" i64 = 3\nstored v 2 = 0 9\ny = OneHot(i, d, "
     "v)\noutput y",
     "y f32 3x3 = 0 9 0 0 0 9 0 0 0", ". s . -> .."},
    {"one hot along axis 0",
     "stored i 2 i64 = 1 0\nstored d 1 i64 = 2\nstored v 2 i32 = -1 1\ny = OneHot(i, d, v) "
     "axis=0\noutput y",
     "y i32 2x2 = -1 1 1 -1", NULL},
    {"places that are not zero", "stored x 2x2 = 0 1 2 0\ny = NonZero(x)\noutput y",
     "y i64 2x2 = 0 1 1 0", ".. -> .."},
};

static void order_matters_along_one_axis_only(void **state) {
  (void)state;
  check_cases(orders, sizeof orders / sizeof *orders);
}

static const bad_case refused[] = {
    {"a block without a scale",
     "stored x 2x3\nstored s 2x1\ny = QuantizeLinear(x, s) axis=1 block_size=2\noutput y",
     LAC_BAD_SHAPE, "input 1 has no place for each block of 2 along axis 1"},
    {"more than there are", X23 "stored k 1 i64 = 4\nv, i = TopK(x, k)\noutput v", LAC_BAD_SHAPE,
     "k = 4 of an axis of size 3"},
    {"scales of another number",
     "stored x 2x2 i8\nstored s 3 = 1 2 3\ny = DequantizeLinear(x, s)\noutput y", LAC_BAD_SHAPE,
     "3 scales for an axis of size 2"},
    {"a vector's triangle", "stored x 3\ny = Trilu(x)\noutput y", LAC_BAD_SHAPE, "at least 2"},
    {"a largest of nothing", "stored x 0x2\ny = ArgMax(x)\noutput y", LAC_BAD_SHAPE, "empty"},
};

static void what_makes_no_sense_is_refused(void **state) {
  (void)state;
  check_refused(refused, sizeof refused / sizeof *refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(casts_convert_every_element),
      cmocka_unit_test(quantization_follows_its_axis),
      cmocka_unit_test(order_matters_along_one_axis_only),
      cmocka_unit_test(what_makes_no_sense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
