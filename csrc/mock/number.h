// How numbers lie in memory and what they are computed in; both libraries use it.

#ifndef ASCEND_MOCK_NUMBER_H
#define ASCEND_MOCK_NUMBER_H

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mock {

inline float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

inline uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// How an element lies in memory (Stored) and what it is computed in (Value).
template <class Type>
struct Plain {
    using Stored = Type;
    using Value = Type;
    static Value load(Stored stored) { return stored; }
    static Stored store(Value value) { return value; }
};

struct Half {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t half) {
        const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
        const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
        const float scaled = float_of(magnitude) * 0x1p112f;               // moves the exponent, subnormals too
        const uint32_t special = magnitude >= 0x0f800000 ? 0x7f800000 : 0; // infinity and NaN
        return float_of(bits_of(scaled) | special | sign);
    }
    static uint16_t store(float value) {
        const uint32_t bits = bits_of(value);
        const uint32_t magnitude = bits & 0x7fffffff;
        const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
        if (magnitude >= 0x47800000) { // from 65536 on
            return static_cast<uint16_t>(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
        }
        if (magnitude < 0x38800000) { // subnormal: 0.5 has the spacing that is due
            return static_cast<uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F)));
        }
        const uint32_t rounded = magnitude - (112U << 23) + 0xfff + ((magnitude >> 13) & 1);
        return static_cast<uint16_t>(sign | (rounded >> 13));
    }
};

struct Brain {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t brain) { return float_of(static_cast<uint32_t>(brain) << 16); }
    static uint16_t store(float value) {
        const uint32_t bits = bits_of(value);
        if ((bits & 0x7fffffff) > 0x7f800000) {
            return static_cast<uint16_t>((bits >> 16) | 0x40); // a quiet NaN
        }
        return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
};

// Integers wrap around; done without a sign, because C++ does not define it with one. Narrow ones go by way of 64 bits,
// since they would be promoted to int.
template <class Value>
Value add(Value a, Value b) {
    if constexpr (std::is_integral<Value>::value) {
        return static_cast<Value>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
        return a + b;
    }
}

template <class Value>
Value multiply(Value a, Value b) {
    if constexpr (std::is_integral<Value>::value) {
        return static_cast<Value>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
        return a * b;
    }
}

} // namespace mock

#endif
