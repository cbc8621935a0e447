// The strict twin's pipe, queues and flags. A queue orders the pipes by flags of its own, as the vendor's does.
#ifndef ADASUM_STRICT_QUEUES_H
#define ADASUM_STRICT_QUEUES_H

#include "tensors.h"

namespace AscendC {

template <HardEvent event>
inline void SetFlag(int32_t id, twin::Site at = twin::Site::here()) {
    twin::set_flag(event, id, at);
}

template <HardEvent event>
inline void WaitFlag(int32_t id, twin::Site at = twin::Site::here()) {
    twin::wait_flag(event, id, at);
}

template <pipe_t pipe>
inline void PipeBarrier(twin::Site at = twin::Site::here()) {
    static_assert(pipe != PIPE_S, "duty 9 (types): the scalar unit has no barrier of its own");
    if (pipe == PIPE_ALL) {
        twin::barrier_of_all(at);
    } else {
        twin::barrier(pipe == PIPE_V ? twin::VECTOR : pipe == PIPE_MTE2 ? twin::COPY_IN : twin::COPY_OUT, at);
    }
}

// Depth is how many tensors may wait between EnQue and DeQue.
template <TPosition position, int32_t depth, auto mask = 0>
class TQue {
    static_assert(position == TPosition::VECIN || position == TPosition::VECOUT,
                  "duty 4 (queues): the twin has queues of VECIN and VECOUT");
    static_assert(depth >= 1 && depth <= 8, "duty 4 (queues): a depth of 1 to 8");

public:
    TQue() = default;
    TQue(const TQue &) = delete;
    TQue &operator=(const TQue &) = delete;
    ~TQue() {
        for (int32_t i = 0; i < count_; ++i) {
            ADASUM_STRICT_CHECK(buffers_[i].state == twin::State::FREE, QUEUES, made_,
                                "a kernel ends before it frees a tensor of this queue");
            wait(FREED, buffers_[i], made_);
        }
    }

    template <typename T>
    LocalTensor<T> AllocTensor(twin::Site at = twin::Site::here()) {
        ADASUM_STRICT_CHECK(count_ > 0, QUEUES, at, "AllocTensor from a queue without buffers");
        twin::Buffer &buffer = buffers_[next_];
        ADASUM_STRICT_CHECK(buffer.state == twin::State::FREE, QUEUES, at, "AllocTensor finds no free buffer");
        next_ = (next_ + 1) % count_;
        wait(FREED, buffer, at);
        buffer.state = twin::State::ALLOCATED;
        ++buffer.generation;
        return LocalTensor<T>(&buffer, buffer.bytes);
    }

    template <typename T>
    bool EnQue(const LocalTensor<T> &tensor, twin::Site at = twin::Site::here()) {
        take(tensor, twin::State::ALLOCATED, "EnQue of a tensor that was not allocated", at);
        ADASUM_STRICT_CHECK(waiting_ < depth, QUEUES, at, "EnQue exceeds the depth of its queue");
        tensor.buffer_of_()->state = twin::State::QUEUED;
        queue_[(first_ + waiting_++) % depth] = tensor.buffer_of_();
        set(FILLED, *tensor.buffer_of_(), at);
        return true;
    }

    template <typename T>
    LocalTensor<T> DeQue(twin::Site at = twin::Site::here()) {
        ADASUM_STRICT_CHECK(waiting_ > 0, QUEUES, at, "DeQue from an empty queue");
        twin::Buffer &buffer = *queue_[first_];
        first_ = (first_ + 1) % depth;
        --waiting_;
        wait(FILLED, buffer, at);
        buffer.state = twin::State::TAKEN;
        return LocalTensor<T>(&buffer, buffer.bytes);
    }

    template <typename T>
    void FreeTensor(LocalTensor<T> &tensor, twin::Site at = twin::Site::here()) {
        take(tensor, twin::State::TAKEN, "FreeTensor of a tensor that was not taken from its queue", at);
        twin::Buffer &buffer = *tensor.buffer_of_();
        buffer.state = twin::State::FREE;
        // What is left in it is no one's to use, from when its last user is done with it.
        uint32_t begin = buffer.begin;
        uint32_t bytes = buffer.bytes;
        twin::issue_silently(USER, [begin, bytes] { twin::poison(begin, bytes); });
        set(FREED, buffer, at);
    }

private:
    friend class TPipe;
    static constexpr TPosition POSITION = position;
    static constexpr int32_t MAX_COUNT = 8;
    static constexpr bool IN = position == TPosition::VECIN;
    static constexpr HardEvent FILLED = IN ? HardEvent::MTE2_V : HardEvent::V_MTE3;
    static constexpr HardEvent FREED = IN ? HardEvent::V_MTE2 : HardEvent::MTE3_V;
    static constexpr twin::Pipe USER = IN ? twin::VECTOR : twin::COPY_OUT;

    template <typename T>
    void take(const LocalTensor<T> &tensor, twin::State state, const char *rule, twin::Site at) {
        twin::Buffer *buffer = tensor.buffer_of_();
        bool ours = buffer >= buffers_ && buffer < buffers_ + count_;
        ADASUM_STRICT_CHECK(ours && buffer->generation == tensor.generation_of_() && buffer->state == state, QUEUES, at,
                            "%s", rule);
    }

    static void set(HardEvent event, twin::Buffer &buffer, twin::Site at) {
        buffer.event = twin::take_event(event, at);
        twin::set_flag(event, buffer.event, at);
    }

    static void wait(HardEvent event, twin::Buffer &buffer, twin::Site at) {
        if (buffer.event >= 0) {
            twin::wait_flag(event, buffer.event, at);
            twin::give_event_back(event, buffer.event, at);
            buffer.event = -1;
        }
    }

    twin::Buffer buffers_[MAX_COUNT];
    twin::Buffer *queue_[depth];
    twin::Site made_{"", 0};
    int32_t count_ = 0;
    int32_t next_ = 0;
    int32_t first_ = 0;
    int32_t waiting_ = 0;
};

template <TPosition position = TPosition::LCM>
class TBuf {
public:
    TBuf() = default;
    TBuf(const TBuf &) = delete;
    TBuf &operator=(const TBuf &) = delete;

    template <typename T>
    LocalTensor<T> Get(twin::Site at = twin::Site::here()) {
        ADASUM_STRICT_CHECK(buffer_.bytes > 0, QUEUES, at, "Get from a TBuf without InitBuffer");
        return LocalTensor<T>(&buffer_, buffer_.bytes);
    }

private:
    friend class TPipe;
    twin::Buffer buffer_;
};

class TPipe {
public:
    explicit TPipe(twin::Site at = twin::Site::here()) : made_(at) {
        twin::open(at);
        open_ = this;
    }
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;
    ~TPipe() {
        twin::close(made_);
        open_ = nullptr;
    }

    template <class T>
    bool InitBuffer(T &queue, uint8_t num, uint32_t len, twin::Site at = twin::Site::here()) {
        ADASUM_STRICT_CHECK(num > 0 && num <= queue.MAX_COUNT, QUEUES, at, "InitBuffer: the twin takes 1 to 8 buffers");
        ADASUM_STRICT_CHECK(queue.count_ == 0, QUEUES, at, "InitBuffer of a queue that has buffers");
        queue.made_ = at;
        for (queue.count_ = 0; queue.count_ < num; ++queue.count_) {
            twin::Buffer &buffer = queue.buffers_[queue.count_];
            give(buffer, T::POSITION, len, at);
            buffer.state = twin::State::FREE;
        }
        return true;
    }

    template <TPosition position>
    bool InitBuffer(TBuf<position> &buffer, uint32_t len, twin::Site at = twin::Site::here()) {
        give(buffer.buffer_, position, len, at);
        return true;
    }

    // An id that is not in use; it is not reserved by this.
    TEventID FetchEventID(HardEvent event, twin::Site at = twin::Site::here()) {
        return static_cast<TEventID>(twin::fetch_event(event, at));
    }

    // Not of the vendor's interface, for the twin.
    static TPipe *current_() { return open_; }

private:
    static void give(twin::Buffer &buffer, TPosition position, uint32_t len, twin::Site at) {
        buffer.begin = twin::reserve(len, at);
        buffer.bytes = (len + twin::BLOCK_BYTES - 1) / twin::BLOCK_BYTES * twin::BLOCK_BYTES;
        buffer.position = position;
    }

    twin::Site made_;
    static inline thread_local TPipe *open_ = nullptr;
};

} // namespace AscendC

// In no namespace, as the vendor has it.
inline AscendC::TPipe *GetTPipePtr() { return AscendC::TPipe::current_(); }

#endif
