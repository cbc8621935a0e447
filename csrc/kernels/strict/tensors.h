// Tensors of the strict twin: every access is checked against its tensor, its buffer and the protocol of its queue.
#ifndef ADASUM_STRICT_TENSORS_H
#define ADASUM_STRICT_TENSORS_H

#include "engine.h"
#include "types.h"

namespace AscendC {
namespace twin {

enum class State : uint8_t { FREE, ALLOCATED, QUEUED, TAKEN };

// Part of the unified buffer that InitBuffer gave out.
struct Buffer {
    uint32_t begin = 0;
    uint32_t bytes = 0;
    TPosition position = TPosition::VECCALC;
    State state = State::TAKEN;
    uint32_t generation = 0; // counts its allocations: a tensor of an earlier one is stale
    int32_t event = -1;      // the id of the flag that its queue has up for it
};

// Checked bytes of the unified buffer.
struct Operand {
    uint32_t begin;
    uint32_t bytes;

    Access read() const { return Access{begin, bytes, false}; }
    Access write() const { return Access{begin, bytes, true}; }
};

} // namespace twin

template <typename T>
class LocalTensor {
public:
    LocalTensor() = default;

    LocalTensor operator[](const uint32_t offset) const {
        LocalTensor part = *this;
        uint64_t skipped = static_cast<uint64_t>(offset) * sizeof(T);
        if (skipped > bytes_) {
            // Where it is used the site is known.
            part.invalid_ = true;
            return part;
        }
        part.begin_ += static_cast<uint32_t>(skipped);
        part.bytes_ -= static_cast<uint32_t>(skipped);
        return part;
    }

    T GetValue(const uint32_t index, twin::Site at = twin::Site::here()) const {
        twin::Operand place = operand_(index, 1, at);
        T value;
        twin::scalar_load(at, place.begin, place.bytes, &value);
        return value;
    }

    template <typename S>
    void SetValue(const uint32_t index, const S value, twin::Site at = twin::Site::here()) const {
        static_assert(std::is_same<S, T>::value, "duty 9 (types): SetValue of another type than the tensor's");
        twin::Operand place = operand_(index, 1, at);
        twin::scalar_store(at, place.begin, place.bytes, &value);
    }

    template <typename U>
    LocalTensor<U> ReinterpretCast() const {
        LocalTensor<U> other;
        other.buffer_ = buffer_;
        other.begin_ = begin_;
        other.bytes_ = bytes_;
        other.generation_ = generation_;
        other.invalid_ = invalid_;
        return other;
    }

    // Not of the vendor's interface, for the twin: a trailing underscore marks it.
    LocalTensor(twin::Buffer *buffer, uint32_t bytes)
        : buffer_(buffer), begin_(buffer->begin), bytes_(bytes), generation_(buffer->generation) {}

    twin::Buffer *buffer_of_() const { return buffer_; }
    uint32_t generation_of_() const { return generation_; }

    twin::Operand operand_(uint64_t index, uint64_t count, twin::Site at) const {
        ADASUM_STRICT_CHECK(buffer_ != nullptr, QUEUES, at, "use of a tensor that stands for nothing");
        ADASUM_STRICT_CHECK(!invalid_, BOUNDS, at, "a sub-tensor starts behind the end of its tensor");
        ADASUM_STRICT_CHECK(buffer_->generation == generation_ && buffer_->state != twin::State::FREE, QUEUES, at,
                            "use of a tensor that was freed");
        ADASUM_STRICT_CHECK(buffer_->state != twin::State::QUEUED, QUEUES, at,
                            "use of a tensor that waits in its queue");
        ADASUM_STRICT_CHECK(index + count <= bytes_ / sizeof(T), BOUNDS, at,
                            "elements %llu to %llu of a local tensor of %llu", static_cast<unsigned long long>(index),
                            static_cast<unsigned long long>(index + count),
                            static_cast<unsigned long long>(bytes_ / sizeof(T)));
        return twin::Operand{begin_ + static_cast<uint32_t>(index * sizeof(T)),
                             static_cast<uint32_t>(count * sizeof(T))};
    }

    // An operand that starts on a boundary of `alignment` bytes.
    twin::Operand operand_(uint64_t count, uint32_t alignment, const char *what, twin::Site at) const {
        twin::Operand place = operand_(0, count, at);
        ADASUM_STRICT_CHECK(place.begin % alignment == 0, ALIGNMENT, at, "%s: an operand is not on %u bytes", what,
                            alignment);
        return place;
    }

private:
    template <typename U>
    friend class LocalTensor;

    twin::Buffer *buffer_ = nullptr;
    uint32_t begin_ = 0;
    uint32_t bytes_ = 0;
    uint32_t generation_ = 0;
    bool invalid_ = false;
};

template <typename T>
class GlobalTensor {
public:
    void SetGlobalBuffer(__gm__ T *buffer) {
        address_ = reinterpret_cast<uint64_t>(buffer);
        bound_ = true;
    }

    GlobalTensor operator[](const uint64_t offset) const {
        GlobalTensor part = *this;
        part.address_ += offset * sizeof(T);
        return part;
    }

    // Not of the vendor's interface: the address, checked. How far it reaches is a question of device memory (engine.cpp).
    uint64_t place_(twin::Site at) const {
        ADASUM_STRICT_CHECK(bound_, BOUNDS, at, "use of a global tensor without SetGlobalBuffer");
        ADASUM_STRICT_CHECK(address_ % alignof(T) == 0, ALIGNMENT, at, "device memory: not on the size of an element");
        return address_;
    }

private:
    uint64_t address_ = 0;
    bool bound_ = false;
};

} // namespace AscendC

#endif
