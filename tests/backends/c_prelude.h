/* What printed kernels stand on: indices, bits, and the shape of sums and products of floats. */
#include <stdint.h>
#include <stdlib.h>
#include <tgmath.h>
#define BITS(T, x) (((union { __typeof__(x) from; T to; }){.from = (x)}).to)
#define FIRST(a, p, h, q, BEFORE) ((a) != (a) ? (h) == (h) || (p) < (q) : \
  (h) == (h) && ((a) BEFORE (h) || ((a) == (h) && (p) < (q))))
#define TIMES(T, h, i, a, b) { T x = h * a - i * b; i = h * b + i * a; h = x; }
#define FUSED(T, h, i, a, b) { T x = fma(h, a, -(i * b)); i = fma(h, b, i * a); h = x; }
static int64_t quotient(int64_t a, int64_t c) { return a / c - (a % c < 0); }
static int64_t rest(int64_t a, int64_t c) { return a - quotient(a, c) * c; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The shape of kernel/analyse/reduction: of a sum, a dot, or a product. What is of float is computed
   in double and rounded, which gives the same but for fma. A term is one factor, or two. */
typedef struct { double x, y; } term;
typedef struct { char kind; int single; } form;
static double join(form f, double a, double b) {
  double whole = f.kind == 'p' ? a * b : a + b;
  return f.single ? (float)whole : whole;
}
static double serial(form f, const term *t, int64_t first, int64_t stop, int64_t step) {
  double held = f.kind == 'd' ? join((form){'p', f.single}, t[first].x, t[first].y) : t[first].x;
  for (int64_t i = first + step; i < stop; i += step)
    held = f.kind != 'd' ? join(f, held, t[i].x)
      : f.single ? fma((float)t[i].x, (float)t[i].y, (float)held) : fma(t[i].x, t[i].y, held);
  return held;
}
static double balanced(form f, term *t, int64_t n) {
  for (; n > 1; n = (n + 1) / 2)
    for (int64_t i = 0; i < n; i += 2)
      t[i / 2].x = i + 1 < n ? join(f, t[i].x, t[i + 1].x) : t[i].x;
  return t[0].x;
}
static double runs(form f, const term *t, int64_t at, int64_t stop, int lanes, int copies) {
  int64_t round = lanes * copies, size = round * RUN, count = 0;
  term each[COPIES], *sums = malloc((stop / size + 1) * sizeof(term));
  for (; at < stop; at += size) {
    int64_t n = 0, end = least(at + size, stop);
    for (int64_t i = at; i < least(at + round, stop); i += lanes)
      each[n++].x = serial(f, t, i, end, round);
    sums[count++].x = balanced(f, each, n);
  }
  double whole = balanced(f, sums, count);
  return free(sums), whole;
}
static double chunks(form f, const term *t, int64_t n);
/* One lane over all axes, or elements that are no rounds of lanes, or chunks along the last axis. */
enum { NONE = -1, CHUNKS = -2 };
static double folded(form f, const term *t, int rank, const int64_t *dims, int64_t lane) {
  int64_t n = dims[0], step = 1;
  if (rank == 1 && lane == CHUNKS) return chunks(f, t, n);
  if (rank == 1) return lane < 0 ? runs(f, t, 0, n, 1, 1) : runs(f, t, lane, n, LANES, COPIES);
  for (int i = 1; i < rank; i++) step *= dims[i];
  term *each = malloc(n * sizeof(term));
  for (int64_t i = 0; i < n; i++) each[i].x = folded(f, t + i * step, rank - 1, dims + 1, lane);
  double whole = runs((form){f.kind == 'd' ? 's' : f.kind, f.single}, each, 0, n, 1, 1);
  return free(each), whole;
}
static double chunk(form f, const term *t, int rank, const int64_t *dims) {
  double each[LANES];
  int64_t count = least(LANES, dims[rank - 1]);
  for (int64_t n = 0; n < count; n++) each[n] = folded(f, t, rank, dims, n);
  for (int64_t half = LANES / 2; half; half /= 2)
    for (int64_t n = 0; n < half && n + half < count; n++)
      each[n] = join(f, each[n], each[n + half]);
  return each[0];
}
static double chunks(form f, const term *t, int64_t n) {
  int64_t count = 0, left;
  term *each = malloc((n / STRETCH + 1) * sizeof(term));
  for (int64_t i = 0; i < n; i += STRETCH)
    left = least(STRETCH, n - i), each[count++].x = chunk(f, t + i, 1, &left);
  double whole = balanced(f, each, count);
  return free(each), whole;
}
static double fold(form f, int along, int rank, const int64_t *dims, term *t) {
  double whole = along && dims[rank - 1] <= STRETCH ? chunk(f, t, rank, dims)
    : folded(f, t, rank, dims, along ? CHUNKS : NONE);
  return free(t), f.kind == 'p' ? whole : whole + 0;
}
