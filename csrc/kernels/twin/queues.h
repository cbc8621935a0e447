// The twin's pipe, queues and flags. It runs every instruction at once, so flags and barriers order nothing here;
// it only checks that they pair.
#ifndef ADASUM_TWIN_QUEUES_H
#define ADASUM_TWIN_QUEUES_H

#include "names.h"
#include "unified_buffer.h"

namespace AscendC {
namespace twin {

constexpr int32_t EVENTS = static_cast<int32_t>(HardEvent::MAX);
constexpr int32_t EVENT_IDS = 8;
inline thread_local bool flags[EVENTS][EVENT_IDS];

inline bool &flag(HardEvent event, int32_t id) {
    ADASUM_TWIN_CHECK(id >= 0 && id < EVENT_IDS, "an event id is out of range");
    return flags[static_cast<uint8_t>(event)][id];
}

} // namespace twin

template <HardEvent event>
inline void SetFlag(int32_t id) {
    bool &flag = twin::flag(event, id);
    ADASUM_TWIN_CHECK(!flag, "a flag is set twice without a wait");
    flag = true;
}

template <HardEvent event>
inline void WaitFlag(int32_t id) {
    bool &flag = twin::flag(event, id);
    ADASUM_TWIN_CHECK(flag, "a wait for a flag that nothing sets");
    flag = false;
}

template <pipe_t pipe>
inline void PipeBarrier() {}

template <TPosition position, int32_t depth, auto mask = 0>
class TQue {
public:
    TQue() = default;
    TQue(const TQue &) = delete;
    TQue &operator=(const TQue &) = delete;
    ~TQue() {
        for (int32_t i = 0; i < count_; ++i) {
            ADASUM_TWIN_CHECK(buffers_[i].state == twin::State::FREE, "a kernel ends before it frees a tensor");
        }
    }

    template <typename T>
    LocalTensor<T> AllocTensor() {
        twin::Buffer *buffer = &buffers_[next_];
        ADASUM_TWIN_CHECK(buffer->state == twin::State::FREE, "AllocTensor finds no free buffer");
        next_ = next_ + 1 < count_ ? next_ + 1 : 0;
        buffer->state = twin::State::ALLOCATED;
        return LocalTensor<T>(buffer, buffer->base, buffer->bytes);
    }

    template <typename T>
    bool EnQue(const LocalTensor<T> &tensor) {
        ADASUM_TWIN_CHECK(waiting_ < depth, "EnQue exceeds the depth of its queue");
        take(tensor.buffer(), twin::State::ALLOCATED, "EnQue of a tensor that was not allocated");
        tensor.buffer()->state = twin::State::QUEUED;
        queue_[(first_ + waiting_++) % depth] = tensor.buffer();
        return true;
    }

    template <typename T>
    LocalTensor<T> DeQue() {
        ADASUM_TWIN_CHECK(waiting_ > 0, "DeQue from an empty queue");
        twin::Buffer *buffer = queue_[first_];
        first_ = (first_ + 1) % depth;
        --waiting_;
        buffer->state = twin::State::TAKEN;
        return LocalTensor<T>(buffer, buffer->base, buffer->bytes);
    }

    template <typename T>
    void FreeTensor(LocalTensor<T> &tensor) {
        take(tensor.buffer(), twin::State::TAKEN, "FreeTensor of a tensor that was not taken from its queue");
        tensor.buffer()->state = twin::State::FREE;
    }

private:
    friend class TPipe;
    static constexpr int32_t MAX_COUNT = 4;

    void take(twin::Buffer *buffer, twin::State state, const char *rule) {
        bool ours = buffer >= buffers_ && buffer < buffers_ + count_;
        ADASUM_TWIN_CHECK(ours && buffer->state == state, rule);
    }

    twin::Buffer buffers_[MAX_COUNT];
    twin::Buffer *queue_[depth];
    int32_t count_ = 0;
    int32_t next_ = 0;
    int32_t first_ = 0;
    int32_t waiting_ = 0;
};

template <TPosition position = TPosition::LCM>
class TBuf {
public:
    template <typename T>
    LocalTensor<T> Get() {
        return LocalTensor<T>(&buffer_, buffer_.base, buffer_.bytes);
    }

private:
    friend class TPipe;
    twin::Buffer buffer_;
};

class TPipe {
public:
    TPipe();
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;
    ~TPipe() {
        for (const auto &event : twin::flags) {
            for (bool flag : event) {
                ADASUM_TWIN_CHECK(!flag, "a kernel ends with a flag that nothing waits for");
            }
        }
        ADASUM_TWIN_CHECK(!twin::atomic_add, "a kernel ends while its copies out still add");
    }

    template <class T>
    bool InitBuffer(T &queue, uint8_t num, uint32_t len) {
        ADASUM_TWIN_CHECK(num > 0 && num <= queue.MAX_COUNT, "InitBuffer: the twin takes 1 to 4 buffers a queue");
        queue.count_ = num;
        for (uint8_t i = 0; i < num; ++i) {
            give(queue.buffers_[i], len);
        }
        return true;
    }

    template <TPosition position>
    bool InitBuffer(TBuf<position> &buffer, uint32_t len) {
        give(buffer.buffer_, len);
        return true;
    }

    // An id whose flag is down; like the vendor's it does not reserve the id.
    TEventID FetchEventID(HardEvent event) {
        for (int8_t id = 0; id < twin::EVENT_IDS; ++id) {
            if (!twin::flag(event, id)) {
                return id;
            }
        }
        twin::violated(__FILE__, __LINE__, "FetchEventID: all ids of the event are in use");
    }

private:
    void give(twin::Buffer &buffer, uint32_t len) {
        uint32_t rounded = (len + twin::BLOCK_BYTES - 1) / twin::BLOCK_BYTES * twin::BLOCK_BYTES;
        // A register that lies across two cache lines takes twice as long.
        uint32_t begin = (used_ + twin::CACHE_LINE - 1) / twin::CACHE_LINE * twin::CACHE_LINE;
        ADASUM_TWIN_CHECK(++buffers_ <= twin::MAX_BUFFERS, "InitBuffer: more than 64 buffers");
        ADASUM_TWIN_CHECK(rounded <= twin::UB_BYTES - begin, "InitBuffer exceeds the unified buffer");
        buffer.base = twin::unified_buffer.bytes + begin;
        buffer.bytes = rounded;
        used_ = begin + rounded;
    }

    uint32_t used_ = 0;
    uint32_t buffers_ = 0;
};

namespace twin {
inline thread_local TPipe *pipe = nullptr;
} // namespace twin

inline TPipe::TPipe() {
    twin::pipe = this;
    std::memset(twin::flags, 0, sizeof(twin::flags));
}

} // namespace AscendC

// In no namespace, as the vendor has it.
inline AscendC::TPipe *GetTPipePtr() { return AscendC::twin::pipe; }

#endif
