// Which element types the instructions of each chip take. The 16-bit types are those of the fast twin.
//
// Arch 2201: Atlas A2 and A3; 3510: Ascend 950; 1001: Ascend 910A.
#ifndef ADASUM_STRICT_TYPES_H
#define ADASUM_STRICT_TYPES_H

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../twin/names.h"
#include "../twin/types.h"

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif

static_assert(__NPU_ARCH__ == 2201 || __NPU_ARCH__ == 3510 || __NPU_ARCH__ == 1001,
              "the strict twin knows arch 2201, 3510 and 1001");

namespace AscendC {
namespace twin {

constexpr bool IS_1001 = __NPU_ARCH__ == 1001;
constexpr bool IS_3510 = __NPU_ARCH__ == 3510;

template <typename T, typename... Ts>
constexpr bool one_of = (std::is_same<T, Ts>::value || ...);

// Add, Sub, Mul, Max.
template <typename T>
constexpr bool adds =
    one_of<T, half, float, int32_t> || (!IS_1001 && one_of<T, int16_t>) || (IS_3510 && one_of<T, bfloat16_t>);
// Div, Sqrt.
template <typename T>
constexpr bool divides = one_of<T, half, float>;
// Muls.
template <typename T>
constexpr bool scales =
    one_of<T, half, float> || (!IS_1001 && one_of<T, int16_t, int32_t>) || (IS_3510 && one_of<T, bfloat16_t>);
// MulAddDst, which arch 1001 lacks.
template <typename T, typename U>
constexpr bool multiplies_and_adds = !IS_1001 && ((std::is_same<T, U>::value && one_of<T, half, float>) ||
                                                  (std::is_same<T, float>::value && std::is_same<U, half>::value));
// SetAtomicAdd.
template <typename T>
constexpr bool adds_at_once = one_of<T, float> || (!IS_1001 && one_of<T, half, int8_t, int16_t, int32_t, bfloat16_t>);
template <typename T>
constexpr bool sums = one_of<T, half> || (!IS_1001 && one_of<T, float>);
template <typename T>
constexpr bool has = !IS_1001 || !one_of<T, bfloat16_t>;
// Cast from U to T, and by which rounding modes: with another one the vendor's code issues no instruction.
template <typename T, typename U>
constexpr bool casts =
    (one_of<T, float> && one_of<U, half>) || (one_of<T, half> && one_of<U, float>) ||
    (!IS_1001 && one_of<T, float> && one_of<U, bfloat16_t>) || (!IS_1001 && one_of<T, bfloat16_t> && one_of<U, float>);

template <typename T, typename U>
constexpr bool rounds(RoundMode mode) {
    bool none = mode == RoundMode::CAST_NONE;
    bool odd = mode == RoundMode::CAST_ODD;
    if (std::is_same<T, float>::value) {
        return none;
    }
    if (std::is_same<T, bfloat16_t>::value) {
        return !none && !odd;
    }
    return none || odd || !IS_1001;
}

// Numbers as the instructions compute with them.
inline float number(float value) { return value; }
template <typename T>
float number(T value) {
    static_assert(one_of<T, half, bfloat16_t>, "no number");
    float wide;
    convert(value, wide);
    return wide;
}
inline int64_t number(int32_t value) { return value; }
inline int64_t number(int16_t value) { return value; }

inline void assign(float &to, float value) { to = value; }
inline void assign(half &to, float value) { convert(value, to); }
inline void assign(bfloat16_t &to, float value) { convert(value, to); }
inline void assign(int32_t &to, int64_t value) { to = static_cast<int32_t>(value); }
inline void assign(int16_t &to, int64_t value) { to = static_cast<int16_t>(value); }

} // namespace twin
} // namespace AscendC

#endif
