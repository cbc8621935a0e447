// How numbers lie in memory and what they are computed in; both libraries use it.

#ifndef ASCEND_MOCK_NUMBER_H
#define ASCEND_MOCK_NUMBER_H

#include <cstdint>
#include <type_traits>

#include "../kernels/twin/types.h"

namespace mock {

// How an element lies in memory (Stored) and what it is computed in (Value).
template <class Type>
struct Plain {
    using Stored = Type;
    using Value = Type;
    static Value load(Stored stored) { return stored; }
    static Stored store(Value value) { return value; }
};

// A float of 16 bits, converted as the kernels' twin does it.
template <class Type>
struct Narrow {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t bits) {
        float value;
        AscendC::twin::convert(Type{bits}, value);
        return value;
    }
    static uint16_t store(float value) {
        Type narrow;
        AscendC::twin::convert(value, narrow);
        return narrow.bits;
    }
};
using Half = Narrow<half>;
using Brain = Narrow<bfloat16_t>;

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
