// Element types, and which of them the instructions of each chip take.
//
// Arch 2201: Atlas A2 and A3; 3510: Ascend 950; 1001: Ascend 910A.
#ifndef ADASUM_STRICT_TYPES_H
#define ADASUM_STRICT_TYPES_H

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif

static_assert(__NPU_ARCH__ == 2201 || __NPU_ARCH__ == 3510 || __NPU_ARCH__ == 1001,
              "the strict twin knows arch 2201, 3510 and 1001");

namespace AscendC {
namespace twin {

constexpr bool IS_1001 = __NPU_ARCH__ == 1001;
constexpr bool IS_3510 = __NPU_ARCH__ == 3510;

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// value * 2^-shift, rounded to nearest, ties to even.
inline uint32_t round_shift(uint32_t value, uint32_t shift) {
  if (shift > 31) {
    return 0;
  }
  uint32_t kept = value >> shift;
  uint32_t rest = value & ((1U << shift) - 1);
  uint32_t half = 1U << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

inline uint16_t bfloat_bits(float value) {
  uint32_t bits = bits_of(value);
  if (value != value) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<uint16_t>(round_shift(bits, 16));
}

inline uint16_t half_bits(float value) {
  uint32_t bits = bits_of(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000) {
    return static_cast<uint16_t>(sign | 0x7e00);
  }
  if (size >= 0x47800000) {
    return static_cast<uint16_t>(sign | 0x7c00);
  }
  if (size >= 0x38800000) {
    // A carry out of the fraction raises the exponent, up to infinity.
    return static_cast<uint16_t>(sign | round_shift(size - 0x38000000, 13));
  }
  uint32_t exponent = size >> 23;
  uint32_t fraction = exponent == 0 ? 0 : (size & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | round_shift(fraction, 126 - (exponent < 95 ? 95 : exponent)));
}

inline float float_of_half(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 0x1f;
  uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) {
    return float_of(sign | 0x7f800000 | (fraction == 0 ? 0 : 0x400000) | (fraction << 13));
  }
  if (exponent == 0) {
    float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}

}  // namespace twin
}  // namespace AscendC

// As on the device, they carry bits and take part in no arithmetic of the kernel's own.
struct half {
  uint16_t bits;
};
struct bfloat16_t {
  uint16_t bits;
};

namespace AscendC {
namespace twin {

template <typename T, typename... Ts>
constexpr bool one_of = (std::is_same<T, Ts>::value || ...);

// Add, Sub, Mul, Max, Min.
template <typename T>
constexpr bool adds = one_of<T, half, float, int32_t> || (!IS_1001 && one_of<T, int16_t>) ||
                      (IS_3510 && one_of<T, bfloat16_t>);
// Muls, Adds, Maxs, Mins.
template <typename T>
constexpr bool scales = one_of<T, half, float> || (!IS_1001 && one_of<T, int16_t, int32_t>) ||
                        (IS_3510 && one_of<T, bfloat16_t>);
template <typename T>
constexpr bool divides = one_of<T, half, float>;
// Axpy; MulAddDst, which arch 1001 lacks.
template <typename T, typename U>
constexpr bool accumulates = (std::is_same<T, U>::value && one_of<T, half, float>) ||
                             (std::is_same<T, float>::value && std::is_same<U, half>::value);
template <typename T, typename U>
constexpr bool multiplies_and_adds = !IS_1001 && accumulates<T, U>;
template <typename T>
constexpr bool sums = one_of<T, half> || (!IS_1001 && one_of<T, float>);
template <typename T>
constexpr bool has = !IS_1001 || !one_of<T, bfloat16_t>;
template <typename T, typename U>
constexpr bool casts = (one_of<T, float> && one_of<U, half>) || (one_of<T, half> && one_of<U, float>) ||
                       (!IS_1001 && one_of<T, float> && one_of<U, bfloat16_t>) ||
                       (!IS_1001 && one_of<T, bfloat16_t> && one_of<U, float>);

// Numbers as the instructions compute with them.
inline float number(float value) { return value; }
inline float number(half value) { return float_of_half(value.bits); }
inline float number(bfloat16_t value) { return float_of(static_cast<uint32_t>(value.bits) << 16); }
inline int64_t number(int32_t value) { return value; }
inline int64_t number(int16_t value) { return value; }

inline void assign(float &to, float value) { to = value; }
inline void assign(half &to, float value) { to.bits = half_bits(value); }
inline void assign(bfloat16_t &to, float value) { to.bits = bfloat_bits(value); }
inline void assign(int32_t &to, int64_t value) { to = static_cast<int32_t>(value); }
inline void assign(int16_t &to, int64_t value) { to = static_cast<int16_t>(value); }

}  // namespace twin
}  // namespace AscendC

#endif
