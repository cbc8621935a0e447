// Steps of the kernels that the fast twin does in one loop: what is a sequence of vector instructions on the device, and
// in the strict twin, keeps its intermediate results in registers here.
//
// Every lane sees the same operations in the same order, each rounded once, so the bits are the same; tests compare the
// twins. A step takes the tensors that the instructions would, and reads them through the same checks.
#ifndef ADASUM_TWIN_FUSED_H
#define ADASUM_TWIN_FUSED_H

#include "../two_float.h"
#include "instructions.h"
#include "lanes.h"

#define ADASUM_FUSED 1

namespace adasum {
namespace fused {

using Tensor = AscendC::LocalTensor<float>;

// A part of a tile of vector `vector`, as it lies in the tensor of all tiles.
template <typename T>
inline const T *part_of(const AscendC::LocalTensor<T> &tiles, uint32_t vector, uint32_t stride, uint32_t count) {
  return tiles.read(vector * stride, count);
}

// Asks for what lies where the next tile is likely to be: behind this one.
inline void expect(const void *address) { __builtin_prefetch(address, 0, 3); }
constexpr uint32_t AHEAD = 2048;

// Lines of both vectors that are asked for while the lanes of a unit are summed up, so that memory does not wait.
constexpr uint32_t AHEAD_OF_PAIRS = 1024;
constexpr uint32_t BETWEEN_UNITS = 128;

// The products of two vectors, added up in `lanes` lanes: element i of a tile goes to lane i % lanes. Sums of xx, xy and
// yy lie `WIDTH` floats apart.
struct PairSums {
  static constexpr uint32_t WIDTH = 512;
  float *all;
  uint32_t lanes;
  bool fresh;
};

// One row of products, added to the sums or, where those are fresh, put in their place.
template <uint32_t LANES, bool FRESH, typename T>
inline void pair_row(float *__restrict xx, const T *__restrict x, const T *__restrict y) {
  using namespace AscendC::twin;
  float *xy = xx + PairSums::WIDTH;
  float *yy = xy + PairSums::WIDTH;
  // The fewer instructions a line takes, the more lines a processor has under way.
#pragma GCC unroll 8
  for (uint32_t i = 0; i < LANES; i += REGISTER_LANES) {
    // Lines of x, then lines of y: memory gives neighbours faster.
    const T *ahead = (i < LANES / 2 ? x + 2 * i : y + 2 * (i - LANES / 2)) + AHEAD_OF_PAIRS;
    expect(ahead);
    expect(ahead + REGISTER_LANES);
    Lanes a = load_lanes(x + i);
    Lanes b = load_lanes(y + i);
    store_lanes(xx + i, FRESH ? a * a : load_lanes(xx + i) + a * a);
    store_lanes(xy + i, FRESH ? a * b : load_lanes(xy + i) + a * b);
    store_lanes(yy + i, FRESH ? b * b : load_lanes(yy + i) + b * b);
  }
}

template <uint32_t LANES, typename T>
inline void pair_tile(const PairSums &sums, const T *x, const T *y, uint32_t count) {
  using namespace AscendC::twin;
  uint32_t row = 0;
  if (sums.fresh) {
    pair_row<LANES, true>(sums.all, x, y);
    row = LANES;
  }
  for (; row + LANES <= count; row += LANES) {
    pair_row<LANES, false>(sums.all, x + row, y + row);
  }
  float *xx = sums.all;
  float *xy = xx + PairSums::WIDTH;
  float *yy = xy + PairSums::WIDTH;
  for (uint32_t i = row; i < count; ++i) {
    float a = load_one(x + i);
    float b = load_one(y + i);
    uint32_t lane = i - row;
    xx[lane] = xx[lane] + a * a;
    xy[lane] = xy[lane] + a * b;
    yy[lane] = yy[lane] + b * b;
  }
}

// Adds the products of a tile. There are 64 or 512 lanes; sums are fresh only if the tile fills them all.
template <typename T>
inline void pair_tile(const PairSums &sums, const T *x, const T *y, uint32_t count) {
  if (sums.lanes == PairSums::WIDTH) {
    pair_tile<PairSums::WIDTH>(sums, x, y, count);
  } else {
    pair_tile<64>(sums, x, y, count);
  }
  for (uint32_t i = 0; i < BETWEEN_UNITS; i += 64 / sizeof(T)) {
    expect(x + count + AHEAD_OF_PAIRS + i);
    expect(y + count + AHEAD_OF_PAIRS + i);
  }
}

// The sum of 64 or 512 lanes as a tree: halves are joined until 8 lanes are left, then neighbours.
inline float sum_of_lanes(const float *sums, uint32_t lanes) {
  using namespace AscendC::twin;
  constexpr uint32_t REGISTERS = 64 / REGISTER_LANES;
  constexpr uint32_t BLOCK_LANES = 8;
  Lanes parts[REGISTERS];
  for (uint32_t k = 0; k < REGISTERS; ++k) {
    const float *from = sums + k * REGISTER_LANES;
    parts[k] = load_lanes(from);
    if (lanes == 512) {
      Lanes even = (parts[k] + load_lanes(from + 256)) + (load_lanes(from + 128) + load_lanes(from + 384));
      Lanes odd = (load_lanes(from + 64) + load_lanes(from + 320)) + (load_lanes(from + 192) + load_lanes(from + 448));
      parts[k] = even + odd;
    }
  }
  uint32_t left = REGISTERS;
  for (; left * REGISTER_LANES > BLOCK_LANES && left > 1; left /= 2) {
    for (uint32_t k = 0; k < left / 2; ++k) {
      parts[k] = parts[k] + parts[k + left / 2];
    }
  }
  for (uint32_t half = REGISTER_LANES / 2; half >= BLOCK_LANES; half /= 2) {
    parts[0] = parts[0] + exchanged(parts[0], half);
  }
  // What a register cannot hold of 8 lanes lies in the second one.
  for (uint32_t distance = 1; distance < BLOCK_LANES && distance < REGISTER_LANES; distance *= 2) {
    for (uint32_t k = 0; k < left; ++k) {
      parts[k] = parts[k] + exchanged(parts[k], distance);
    }
  }
  return left == 2 ? parts[0][0] + parts[1][0] : parts[0][0];
}

// Two-float sums of all entries of a Gram matrix, `width` lanes apart, of which `lanes` are in use.
struct WideSums {
  float *high;
  float *low;
  uint32_t width;
  uint32_t lanes;
  uint32_t radix;
  bool fresh;
};

// One factor of products; the halves of 12 bits are needed where products are not exact.
struct Factor {
  const float *x;
  const float *upper;
  const float *lower;
};

inline void split(float *upper, float *lower, const float *x, int32_t count) {
#pragma GCC ivdep
  for (int32_t i = 0; i < count; ++i) {
    float wide = x[i] * 4097.0f;
    float rest = wide - x[i];
    float high = wide - rest;
    upper[i] = high;
    lower[i] = x[i] - high;
  }
}

inline float product_error(const Factor &a, const Factor &b, float product, int32_t i) {
  float error = a.upper[i] * b.upper[i] - product;
  error = error + a.upper[i] * b.lower[i];
  error = error + a.lower[i] * b.upper[i];
  return error + a.lower[i] * b.lower[i];
}

// hi + lo = hi + lo + addend.
inline void add_exactly(float &hi, float &lo, float addend) {
  float sum = hi + addend;
  float part = sum - hi;
  float error = addend - part;
  float rest = sum - part;
  lo = lo + error;
  lo = lo + (hi - rest);
  hi = sum;
}

// high + low = a * b; low is zero already where products are exact.
template <bool EXACT>
inline void set_entry(float *__restrict high, float *__restrict low, const Factor &a, const Factor &b, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    float product = a.x[i] * b.x[i];
    high[i] = product;
    if (!EXACT) {
      low[i] = product_error(a, b, product, i);
    }
  }
}

// high + low += a * b.
template <bool EXACT>
inline void add_entry(float *__restrict high, float *__restrict low, const Factor &a, const Factor &b, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    float product = a.x[i] * b.x[i];
    float sum = high[i];
    float rest = low[i];
    if (!EXACT) {
      rest = rest + product_error(a, b, product, i);
    }
    add_exactly(sum, rest, product);
    high[i] = sum;
    low[i] = rest;
  }
}

// Adds the products of up to as many elements of each vector as there are lanes. `halves` has room for two times
// `width` numbers of each vector.
template <bool EXACT>
inline void add_products(const WideSums &sums, const Tensor &halves, const Tensor *x, int32_t count) {
  Factor factors[8];
  for (uint32_t k = 0; k < sums.radix; ++k) {
    factors[k].x = AscendC::twin::input(x[k], count);
    if (!EXACT) {
      for (int32_t i = 0; i < count; i += 16) {
        expect(factors[k].x + i + AHEAD);
      }
      float *upper = halves.write(2 * k * sums.width, sums.width);
      float *lower = halves.write((2 * k + 1) * sums.width, sums.width);
      split(upper, lower, factors[k].x, count);
      factors[k].upper = upper;
      factors[k].lower = lower;
    }
  }
  float *high = sums.high;
  float *low = sums.low;
  for (uint32_t a = 0; a < sums.radix; ++a) {
    for (uint32_t b = a; b < sums.radix; ++b) {
      if (sums.fresh) {
        set_entry<EXACT>(high, low, factors[a], factors[b], count);
      } else {
        add_entry<EXACT>(high, low, factors[a], factors[b], count);
      }
      high += sums.width;
      low += sums.width;
    }
  }
}

// Joins lanes by halves until 8 are left, then adds the first `used` of those in their order; writes hi and lo of each
// entry.
inline void finish_products(const WideSums &sums, uint32_t used, const Tensor &record) {
  uint32_t entries = sums.radix * (sums.radix + 1) / 2;
  for (uint32_t entry = 0; entry < entries; ++entry) {
    float *high = sums.high + entry * sums.width;
    float *low = sums.low + entry * sums.width;
    for (uint32_t half = sums.lanes / 2; half >= 8; half /= 2) {
#pragma GCC ivdep
      for (uint32_t i = 0; i < half; ++i) {
        float sum = high[i];
        float rest = low[i] + low[i + half];
        add_exactly(sum, rest, high[i + half]);
        high[i] = sum;
        low[i] = rest;
      }
    }
    TwoFloat sum{0.0f, 0.0f};
    for (uint32_t lane = 0; lane < used; ++lane) {
      sum = adasum::add(sum, two_sum(high[lane], low[lane]));
    }
    record.SetValue(2 * entry, sum.hi);
    record.SetValue(2 * entry + 1, sum.lo);
  }
}

// Sums of weighted vectors: what they are summed from and the weights.
template <typename T>
struct Weighted {
  const T *x[8];
  const float *weights;
  const float *lows;
};

// out = ((w0 x0 + w1 x1) + w2 x2) + ...
template <uint32_t RADIX, typename T>
inline void weighted_sum(T *out, const Weighted<T> &from, uint32_t count) {
  using namespace AscendC::twin;
  uint32_t i = 0;
  for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
    Lanes sum = load_lanes(from.x[0] + i) * from.weights[0];
    expect(from.x[0] + i + AHEAD);
    for (uint32_t k = 1; k < RADIX; ++k) {
      expect(from.x[k] + i + AHEAD);
      sum = sum + load_lanes(from.x[k] + i) * from.weights[k];
    }
    store_lanes(out + i, sum);
  }
  for (; i < count; ++i) {
    float sum = load_one(from.x[0] + i) * from.weights[0];
    for (uint32_t k = 1; k < RADIX; ++k) {
      sum = sum + load_one(from.x[k] + i) * from.weights[k];
    }
    store_one(out + i, sum);
  }
}

// One more vector in a sum of two-float numbers, as two_float.h does it; `Number` is Lanes or float.
template <typename Number>
inline void add_weighted(Number &sum, Number &rest, const Number &x, float weight, const TwoFloat &halves, float low) {
  Number product = x * weight;
  Number wide = x * 4097.0f;
  Number high = wide - (wide - x);
  Number tail = x - high;
  Number error = high * halves.hi - product;
  error = error + tail * halves.hi;
  error = error + high * halves.lo;
  error = error + tail * halves.lo;
  error = error + x * low;
  rest = rest + error;
  Number total = sum + product;
  Number part = total - sum;
  Number own = total - part;
  rest = rest + ((sum - own) + (product - part));
  sum = total;
}

// The same sum in two-float numbers, with what the weights leave out.
template <typename T>
inline void weighted_sum_exactly(T *out, const Weighted<T> &from, uint32_t radix, uint32_t count) {
  using namespace AscendC::twin;
  TwoFloat halves[8];
  for (uint32_t k = 0; k < radix; ++k) {
    halves[k] = adasum::split(from.weights[k]);
  }
  uint32_t i = 0;
  for (; i + REGISTER_LANES <= count; i += REGISTER_LANES) {
    Lanes sum = {};
    Lanes rest = {};
    for (uint32_t k = 0; k < radix; ++k) {
      add_weighted(sum, rest, load_lanes(from.x[k] + i), from.weights[k], halves[k], from.lows[k]);
    }
    store_lanes(out + i, sum + rest);
  }
  for (; i < count; ++i) {
    float sum = 0.0f;
    float rest = 0.0f;
    for (uint32_t k = 0; k < radix; ++k) {
      add_weighted(sum, rest, load_one(from.x[k] + i), from.weights[k], halves[k], from.lows[k]);
    }
    store_one(out + i, sum + rest);
  }
}

// The sum of a tile of each vector, straight into the result.
template <typename T>
inline void weighted_tile(const AscendC::LocalTensor<T> &result, const AscendC::LocalTensor<T> &tiles, uint32_t stride,
                          const float *weights, const float *lows, uint32_t radix, bool exactly, uint32_t count) {
  Weighted<T> from;
  for (uint32_t k = 0; k < radix; ++k) {
    from.x[k] = part_of(tiles, k, stride, count);
  }
  from.weights = weights;
  from.lows = lows;
  T *out = result.write(0, count);
  if (exactly) {
    weighted_sum_exactly(out, from, radix, count);
    return;
  }
  switch (radix) {
    case 1: return weighted_sum<1>(out, from, count);
    case 2: return weighted_sum<2>(out, from, count);
    case 3: return weighted_sum<3>(out, from, count);
    case 4: return weighted_sum<4>(out, from, count);
    case 5: return weighted_sum<5>(out, from, count);
    case 6: return weighted_sum<6>(out, from, count);
    case 7: return weighted_sum<7>(out, from, count);
    default: return weighted_sum<8>(out, from, count);
  }
}

}  // namespace fused
}  // namespace adasum

#endif
