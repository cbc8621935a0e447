// The strict twin's vector instructions. Elements are computed one by one, each operation rounded on its own.
#ifndef ADASUM_STRICT_VECTORS_H
#define ADASUM_STRICT_VECTORS_H

#include <cmath>

#include "tensors.h"

namespace AscendC {

namespace twin {

constexpr int32_t MAX_REPEATS = 255;
// What one repeat takes of an operand.
constexpr uint32_t REPEAT_BYTES = 256;

constexpr uint64_t repeats_of(uint64_t bytes) { return (bytes + REPEAT_BYTES - 1) / REPEAT_BYTES; }
constexpr int32_t MAX_STRIDE = 65535;

inline bool apart(const Operand &a, const Operand &b) {
    return a.begin + a.bytes <= b.begin || b.begin + b.bytes <= a.begin;
}

// Operands of an instruction are one and the same, or apart.
inline void check_overlap(const char *what, const Operand &dst, const Operand &src, Site at) {
    bool same = dst.begin == src.begin && dst.bytes == src.bytes;
    ADASUM_STRICT_CHECK(same || apart(dst, src), LIMITS, at, "%s: dst and src overlap in part", what);
}

template <typename T>
T load(uint32_t begin, uint32_t index) {
    T value;
    std::memcpy(&value, bytes_at(begin + index * static_cast<uint32_t>(sizeof(T))), sizeof(T));
    return value;
}

// Stores an element; `known` tells whether all that it was made of had been written.
template <typename T>
void store(uint32_t begin, uint32_t index, T value, bool known) {
    uint32_t place = begin + index * static_cast<uint32_t>(sizeof(T));
    std::memcpy(bytes_at(place), &value, sizeof(T));
    mark(place, sizeof(T), known);
}

// Elements that are known to be in reach, for loops over many.
template <typename T>
class View {
public:
    explicit View(const Operand &place) : bytes_(bytes_at(place.begin)) {}

    T get(uint32_t index) const {
        T value;
        std::memcpy(&value, bytes_ + index * sizeof(T), sizeof(T));
        return value;
    }
    void put(uint32_t index, const T &value) const { std::memcpy(bytes_ + index * sizeof(T), &value, sizeof(T)); }

private:
    uint8_t *bytes_;
};

template <typename T>
bool known(uint32_t begin, uint32_t index) {
    return initialised(begin + index * static_cast<uint32_t>(sizeof(T)), sizeof(T));
}

template <typename T>
Operand operand(const char *what, const LocalTensor<T> &tensor, int64_t count, Site at) {
    // Not every chip takes a count of 0 for nothing to do.
    ADASUM_STRICT_CHECK(count > 0, LIMITS, at, "%s: a count of %lld", what, static_cast<long long>(count));
    return tensor.operand_(static_cast<uint64_t>(count), BLOCK_BYTES, what, at);
}

// Elements a and b give f(a, b); with `accumulate` it is f(dst, a, b).
template <typename T, typename U, typename F>
void binary(const char *what, const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
            int32_t count, bool accumulate, F f, Site at) {
    Operand to = operand(what, dst, count, at);
    Operand a = operand(what, src0, count, at);
    Operand b = operand(what, src1, count, at);
    check_overlap(what, to, a, at);
    check_overlap(what, to, b, at);
    std::vector<Access> uses{a.read(), b.read(), to.write()};
    if (accumulate) {
        uses.push_back(to.read());
    }
    issue_vector(at, uses, repeats_of(to.bytes > a.bytes ? to.bytes : a.bytes), [=] {
        bool all = initialised(a.begin, a.bytes) && initialised(b.begin, b.bytes) &&
                   (!accumulate || initialised(to.begin, to.bytes));
        View<T> results(to);
        View<U> xs(a);
        View<U> ys(b);
        for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
            bool sure = all || (known<U>(a.begin, i) && known<U>(b.begin, i) && (!accumulate || known<T>(to.begin, i)));
            T result = results.get(i);
            f(result, xs.get(i), ys.get(i));
            results.put(i, result);
            if (!all) {
                mark(to.begin + i * static_cast<uint32_t>(sizeof(T)), sizeof(T), sure);
            }
        }
        if (all) {
            mark(to.begin, to.bytes, true);
        }
    });
}

// Elements a give f(result, a); with `accumulate` the result holds dst before.
template <typename T, typename U, typename F>
void unary(const char *what, const LocalTensor<T> &dst, const LocalTensor<U> &src, int64_t count, bool accumulate, F f,
           Site at) {
    Operand to = operand(what, dst, count, at);
    Operand a = operand(what, src, count, at);
    check_overlap(what, to, a, at);
    std::vector<Access> uses{a.read(), to.write()};
    if (accumulate) {
        uses.push_back(to.read());
    }
    issue_vector(at, uses, repeats_of(to.bytes > a.bytes ? to.bytes : a.bytes), [=] {
        bool all = initialised(a.begin, a.bytes) && (!accumulate || initialised(to.begin, to.bytes));
        View<T> results(to);
        View<U> xs(a);
        for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
            bool sure = all || (known<U>(a.begin, i) && (!accumulate || known<T>(to.begin, i)));
            T result = results.get(i);
            f(result, xs.get(i));
            results.put(i, result);
            if (!all) {
                mark(to.begin + i * static_cast<uint32_t>(sizeof(T)), sizeof(T), sure);
            }
        }
        if (all) {
            mark(to.begin, to.bytes, true);
        }
    });
}

// An operand in stride mode: its 32-byte blocks, repeat after repeat.
struct Strided {
    uint32_t begin;
    uint32_t block_stride;
    uint32_t repeat_stride;

    uint32_t place(uint32_t repeat, uint32_t byte) const {
        return begin + (repeat * repeat_stride + byte / BLOCK_BYTES * block_stride) * BLOCK_BYTES + byte % BLOCK_BYTES;
    }
    // The blocks of a repeat of which `bytes` bytes are used.
    void blocks(uint32_t repeat, uint32_t bytes, bool write, std::vector<Access> &uses) const {
        for (uint32_t byte = 0; byte < bytes; byte += BLOCK_BYTES) {
            uint32_t part = bytes - byte < BLOCK_BYTES ? bytes - byte : BLOCK_BYTES;
            uses.push_back(Access{place(repeat, byte), part, write});
        }
    }
};

template <typename T>
Strided strided(const char *what, const LocalTensor<T> &tensor, uint32_t mask, uint32_t repeats, uint32_t block_stride,
                uint32_t repeat_stride, Site at) {
    Strided place{0, block_stride, repeat_stride};
    uint32_t bytes = mask * static_cast<uint32_t>(sizeof(T));
    uint32_t last = place.place(repeats - 1, bytes - 1) + 1;
    place.begin = tensor.operand_((last + sizeof(T) - 1) / sizeof(T), BLOCK_BYTES, what, at).begin;
    return place;
}

inline bool overlap(const std::vector<Access> &a, const std::vector<Access> &b) {
    for (const Access &x : a) {
        for (const Access &y : b) {
            if (x.begin < y.begin + y.bytes && y.begin < x.begin + x.bytes) {
                return true;
            }
        }
    }
    return false;
}

inline bool same(const std::vector<Access> &a, const std::vector<Access> &b) {
    for (size_t i = 0; i < a.size(); ++i) {
        if (a.size() != b.size() || a[i].begin != b[i].begin) {
            return false;
        }
    }
    return true;
}

// The overlap rule: within a repeat all or nothing; a repeat must not use what an earlier one wrote.
inline void check_repeats(const char *what, const Strided &dst, uint32_t dst_bytes, const Strided &src,
                          uint32_t src_bytes, uint32_t repeats, Site at) {
    for (uint32_t earlier = 0; earlier < repeats; ++earlier) {
        std::vector<Access> written;
        dst.blocks(earlier, dst_bytes, true, written);
        for (uint32_t later = earlier; later < repeats; ++later) {
            std::vector<Access> used;
            src.blocks(later, src_bytes, false, used);
            bool fine = earlier == later ? same(written, used) || !overlap(written, used) : !overlap(written, used);
            ADASUM_STRICT_CHECK(fine, LIMITS, at, "%s: repeat %u uses what repeat %u writes", what, later, earlier);
        }
    }
}

template <typename T, typename U, typename F>
void strided_binary(const char *what, const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                    uint64_t mask, uint8_t repeats, const BinaryRepeatParams &params, bool accumulate, F f, Site at) {
    constexpr uint32_t LANES = 256 / (sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));
    ADASUM_STRICT_CHECK(mask >= 1 && mask <= LANES, LIMITS, at, "%s: a mask of %llu, at most %u", what,
                        static_cast<unsigned long long>(mask), LANES);
    // Ascend 950 does not promise that no repeat does nothing.
    ADASUM_STRICT_CHECK(repeats > 0, LIMITS, at, "%s: repeatTime is 0", what);
    ADASUM_STRICT_CHECK(params.dstBlkStride > 0, LIMITS, at, "%s: dstBlkStride is 0", what);
    uint32_t lanes = static_cast<uint32_t>(mask);
    uint32_t to_bytes = lanes * static_cast<uint32_t>(sizeof(T));
    uint32_t from_bytes = lanes * static_cast<uint32_t>(sizeof(U));
    Strided to = strided(what, dst, lanes, repeats, params.dstBlkStride, params.dstRepStride, at);
    Strided a = strided(what, src0, lanes, repeats, params.src0BlkStride, params.src0RepStride, at);
    Strided b = strided(what, src1, lanes, repeats, params.src1BlkStride, params.src1RepStride, at);
    // Sums into the second operand are the one exception: Add and its like, not MulAddDst.
    bool excepted = !accumulate && to.begin == b.begin && (params.src1RepStride == 0 || params.dstRepStride == 0);
    check_repeats(what, to, to_bytes, a, from_bytes, repeats, at);
    if (!excepted) {
        check_repeats(what, to, to_bytes, b, from_bytes, repeats, at);
        check_repeats(what, to, to_bytes, to, to_bytes, repeats, at);
    }
    std::vector<Access> uses;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        a.blocks(repeat, from_bytes, false, uses);
        b.blocks(repeat, from_bytes, false, uses);
        to.blocks(repeat, to_bytes, true, uses);
    }
    issue_vector(at, uses, repeats, [=] {
        for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
            for (uint32_t lane = 0; lane < lanes; ++lane) {
                uint32_t x = a.place(repeat, lane * static_cast<uint32_t>(sizeof(U)));
                uint32_t y = b.place(repeat, lane * static_cast<uint32_t>(sizeof(U)));
                uint32_t z = to.place(repeat, lane * static_cast<uint32_t>(sizeof(T)));
                bool sure = known<U>(x, 0) && known<U>(y, 0) && (!accumulate || known<T>(z, 0));
                T result = load<T>(z, 0);
                f(result, load<U>(x, 0), load<U>(y, 0));
                store(z, 0, result, sure);
            }
        }
    });
}

// The bits of a NaN out of an instruction are not the kernel's business: all are the same one.
struct Sum {
    template <typename T>
    void operator()(T &to, T a, T b) const {
        assign(to, number(a) + number(b));
    }
};
struct Difference {
    template <typename T>
    void operator()(T &to, T a, T b) const {
        assign(to, number(a) - number(b));
    }
};
struct Product {
    template <typename T>
    void operator()(T &to, T a, T b) const {
        assign(to, number(a) * number(b));
    }
};
struct Quotient {
    template <typename T>
    void operator()(T &to, T a, T b) const {
        assign(to, number(a) / number(b));
    }
};
struct Larger {
    template <typename T>
    void operator()(T &to, T a, T b) const {
        to = number(a) < number(b) ? b : a;
    }
};
// Two roundings: the product, then the sum.
struct Accumulation {
    template <typename T, typename U>
    void operator()(T &to, U a, U b) const {
        T product;
        assign(product, number(a) * number(b));
        assign(to, number(to) + number(product));
    }
};

} // namespace twin

// Instructions of two operands, by count and by strides.
#define ADASUM_STRICT_BINARY(Name, Operation, table)                                                                   \
    template <typename T>                                                                                              \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,                \
                     const int32_t &count, twin::Site at = twin::Site::here()) {                                       \
        static_assert(twin::table<T>, "duty 9 (types): " #Name " does not take this type on this chip");               \
        twin::binary(#Name, dst, src0, src1, count, false, twin::Operation(), at);                                     \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask, \
                     const uint8_t repeatTime, const BinaryRepeatParams &repeatParams,                                 \
                     twin::Site at = twin::Site::here()) {                                                             \
        static_assert(twin::table<T>, "duty 9 (types): " #Name " does not take this type on this chip");               \
        twin::strided_binary(#Name, dst, src0, src1, mask, repeatTime, repeatParams, false, twin::Operation(), at);    \
    }

ADASUM_STRICT_BINARY(Add, Sum, adds)
ADASUM_STRICT_BINARY(Sub, Difference, adds)
ADASUM_STRICT_BINARY(Mul, Product, adds)
ADASUM_STRICT_BINARY(Max, Larger, adds)
ADASUM_STRICT_BINARY(Div, Quotient, divides)
#undef ADASUM_STRICT_BINARY

template <typename T, typename U>
inline void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                      const int32_t &count, twin::Site at = twin::Site::here()) {
    static_assert(twin::multiplies_and_adds<T, U>, "duty 9 (types): MulAddDst does not take these types here");
    twin::binary("MulAddDst", dst, src0, src1, count, true, twin::Accumulation(), at);
}

template <typename T, typename U, bool isSetMask = true>
inline void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1, uint64_t mask,
                      const uint8_t repeatTime, const BinaryRepeatParams &repeatParams,
                      twin::Site at = twin::Site::here()) {
    static_assert(twin::multiplies_and_adds<T, U>, "duty 9 (types): MulAddDst does not take these types here");
    twin::strided_binary("MulAddDst", dst, src0, src1, mask, repeatTime, repeatParams, true, twin::Accumulation(), at);
}

template <typename T, bool isSetMask = true>
inline void Muls(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, const int32_t &count,
                 twin::Site at = twin::Site::here()) {
    static_assert(twin::scales<T>, "duty 9 (types): Muls does not take this type on this chip");
    const T factor = scalar;
    twin::unary("Muls", dst, src, count, false, [factor](T &to, T a) { twin::Product()(to, a, factor); }, at);
}

template <typename T>
inline void Sqrt(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count,
                 twin::Site at = twin::Site::here()) {
    static_assert(twin::divides<T>, "duty 9 (types): Sqrt does not take this type on this chip");
    twin::unary("Sqrt", dst, src, count, false, [](T &to, T a) { twin::assign(to, std::sqrt(twin::number(a))); }, at);
}

template <typename T>
inline void Duplicate(const LocalTensor<T> &dst, const T &scalar, const int32_t &count,
                      twin::Site at = twin::Site::here()) {
    static_assert(twin::has<T> && (sizeof(T) == 2 || sizeof(T) == 4),
                  "duty 9 (types): Duplicate does not take this type");
    twin::Operand to = twin::operand("Duplicate", dst, count, at);
    const T value = scalar;
    twin::issue_vector(at, {to.write()}, twin::repeats_of(to.bytes), [=] {
        twin::View<T> results(to);
        for (uint32_t i = 0; i < to.bytes / sizeof(T); ++i) {
            results.put(i, value);
        }
        twin::mark(to.begin, to.bytes, true);
    });
}

template <typename T, typename U>
inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &mode, const uint32_t count,
                 twin::Site at = twin::Site::here()) {
    static_assert(twin::casts<T, U>, "duty 9 (types): Cast between these types is not on this chip");
    ADASUM_STRICT_CHECK((twin::rounds<T, U>(mode)), TYPES, at,
                        "Cast with rounding mode %d between types of %d and %d bytes: this chip issues no instruction",
                        static_cast<int>(mode), static_cast<int>(sizeof(U)), static_cast<int>(sizeof(T)));
    ADASUM_STRICT_CHECK(mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT, LIMITS, at,
                        "Cast with rounding mode %d: the twin rounds to nearest only", static_cast<int>(mode));
    twin::unary("Cast", dst, src, count, false, [](T &to, U a) { twin::assign(to, twin::number(a)); }, at);
}

namespace twin {

// One sum of the lanes for each repeat: neighbours first, as a binary tree. Lanes that are not named take no part: not even
// as zeros, which would change the sign of a zero.
template <typename T>
void sum_repeats(const LocalTensor<T> &dst, const LocalTensor<T> &src, const std::vector<uint32_t> &lanes,
                 const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                 const int32_t srcRepStride, Site at) {
    static_assert(sums<T>, "duty 9 (types): WholeReduceSum does not take this type on this chip");
    const auto in_range = [](int32_t value, int32_t low, int32_t high) { return value >= low && value <= high; };
    ADASUM_STRICT_CHECK(in_range(repeatTime, 1, MAX_REPEATS), LIMITS, at,
                        "WholeReduceSum: repeatTime is %d, from 1 to %d", repeatTime, MAX_REPEATS);
    ADASUM_STRICT_CHECK(in_range(dstRepStride, IS_1001 ? 1 : 0, MAX_STRIDE) && in_range(srcBlkStride, 0, MAX_STRIDE) &&
                            in_range(srcRepStride, 0, MAX_STRIDE),
                        LIMITS, at, "WholeReduceSum: a stride is out of range");
    const uint32_t repeats = static_cast<uint32_t>(repeatTime);
    const uint32_t reach = lanes.back() + 1;
    const uint32_t step = static_cast<uint32_t>(dstRepStride);
    const uint32_t last = (repeats - 1) * step + 1;
    Operand to = dst.operand_(last, sizeof(T), "WholeReduceSum", at);
    Strided from = strided("WholeReduceSum", src, reach, repeats, static_cast<uint32_t>(srcBlkStride),
                           static_cast<uint32_t>(srcRepStride), at);
    std::vector<Access> uses;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        from.blocks(repeat, reach * static_cast<uint32_t>(sizeof(T)), false, uses);
    }
    ADASUM_STRICT_CHECK(!overlap(uses, {to.write()}), LIMITS, at, "WholeReduceSum: dst and src overlap");
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        uses.push_back(Access{to.begin + repeat * step * static_cast<uint32_t>(sizeof(T)), sizeof(T), true});
    }
    issue_vector(at, uses, repeats, [=] {
        for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
            std::vector<T> left;
            bool sure = true;
            for (uint32_t lane : lanes) {
                uint32_t place = from.place(repeat, lane * static_cast<uint32_t>(sizeof(T)));
                left.push_back(load<T>(place, 0));
                sure = sure && known<T>(place, 0);
            }
            while (left.size() > 1) {
                size_t pairs = left.size() / 2;
                for (size_t i = 0; i < pairs; ++i) {
                    Sum()(left[i], T(left[2 * i]), T(left[2 * i + 1]));
                }
                if (left.size() % 2 != 0) {
                    left[pairs++] = T(left.back());
                }
                left.resize(pairs);
            }
            store(to.begin, repeat * step, left[0], sure);
        }
    });
}

} // namespace twin

// Of the first lanes.
template <typename T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t mask,
                           const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                           const int32_t srcRepStride, twin::Site at = twin::Site::here()) {
    constexpr int32_t LANES = 256 / sizeof(T);
    ADASUM_STRICT_CHECK(mask >= 1 && mask <= LANES, LIMITS, at, "WholeReduceSum: a mask of %d, at most %d", mask,
                        LANES);
    std::vector<uint32_t> lanes;
    for (int32_t lane = 0; lane < mask; ++lane) {
        lanes.push_back(static_cast<uint32_t>(lane));
    }
    twin::sum_repeats(dst, src, lanes, repeatTime, dstRepStride, srcBlkStride, srcRepStride, at);
}

// Of the lanes whose bits are set: 64 bits for 32-bit types, twice as many for 16-bit ones.
template <typename T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[],
                           const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                           const int32_t srcRepStride, twin::Site at = twin::Site::here()) {
    constexpr uint32_t LANES = 256 / sizeof(T);
    std::vector<uint32_t> lanes;
    for (uint32_t lane = 0; lane < LANES; ++lane) {
        if ((mask[lane / 64] >> (lane % 64) & 1) != 0) {
            lanes.push_back(lane);
        }
    }
    ADASUM_STRICT_CHECK(!lanes.empty() && (LANES > 64 || mask[1] == 0), LIMITS, at,
                        "WholeReduceSum: a mask of %016llx %016llx", static_cast<unsigned long long>(mask[0]),
                        static_cast<unsigned long long>(mask[1]));
    twin::sum_repeats(dst, src, lanes, repeatTime, dstRepStride, srcBlkStride, srcRepStride, at);
}

} // namespace AscendC

#endif
