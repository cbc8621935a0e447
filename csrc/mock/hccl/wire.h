// The connection of one rank to a peer on another server, for one communicator. What a peer on this machine would write
// into shared memory travels as messages, which one thread of this process takes in and writes there in its place. Data
// goes when the reader asks for it, straight from the owner's device memory to where the reader wants it.

#ifndef ASCEND_MOCK_HCCL_WIRE_H
#define ASCEND_MOCK_HCCL_WIRE_H

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "activity.h"
#include "block.h"

namespace mock {

// Something that the network thread watches.
class Watched {
public:
    virtual ~Watched() = default;
    virtual int file() const = 0;
    // False when it is to be forgotten and closed.
    virtual bool ready(uint32_t events) = 0;
    // Called about once a second; false as above.
    virtual bool tick() { return true; }
};

void watch(const std::shared_ptr<Watched> &watched);
// Forgets what has this file number, if anything has; to be called before the file is closed.
void unwatch(int file);
// Whether the network thread shall also say when `watched` can be written.
void watch_writing(const Watched &watched, bool writing);

class Wire : public Watched, public std::enable_shared_from_this<Wire> {
public:
    // `block` and `slot` are this rank's block and the peer's place in it; `arena` is what the peer may read.
    // What the device of `board` does for others than `comm` is told when the peer asks.
    Wire(Descriptor socket, std::string name, Block *block, Slot *slot, const ArenaView &arena, const Board *board,
         std::string comm);

    void post(const Post &post, uint32_t count);
    void acknowledge(uint32_t count);
    void offer(uint64_t kinds, uint32_t building);
    void tell_state(const Header &own);
    // Asks for bytes of the peer's arena; they are there when `fetched` has counted them. No memory is needed of `target`
    // after `forget`.
    void fetch(uint64_t offset, uint64_t bytes, char *target);
    uint32_t fetched() const { return fetched_; }
    void forget();
    // Asks what the peer's device does for other communicators; empty if no answer comes soon.
    std::string ask_elsewhere();
    // The rank has left the communicator: what was said still goes out, nothing is written to the block any more.
    void close();

    bool open() const { return open_; }
    std::string problem() const; // why it is not open
    const std::string &name() const { return name_; }
    Header mirror{}; // what the peer said about itself

    int file() const override { return socket_.get(); }
    bool ready(uint32_t events) override;
    bool tick() override;

private:
    enum class Kind : uint32_t { Post, Acknowledge, Offer, State, Fetch, Data, Ask, Tell };
    struct Frame {
        uint32_t magic;
        uint32_t kind;
        uint64_t a;
        uint64_t b;
        uint64_t bytes; // that follow
    };
    struct Chunk { // to be sent: either its own bytes or a part of the arena
        std::vector<char> own;
        const char *data;
        uint64_t bytes;
    };
    struct Request { // of ours, not answered yet
        uint64_t bytes;
        char *target; // nullptr: nobody wants it any more
    };
    void send(Kind kind, uint64_t a, uint64_t b, const void *body, uint64_t bytes);
    void send_data(uint64_t offset, uint64_t bytes);
    void flush();
    bool receive();
    void begin();
    void finish();
    [[noreturn]] void violated(const char *what) const;
    void lose(const std::string &why);

    const Descriptor socket_;
    const std::string name_;
    const ArenaView arena_;
    const Board *const board_;
    const std::string comm_;

    std::mutex out_mutex_;
    std::deque<Chunk> out_;
    bool writing_ = false; // the network thread waits until more can be written
    bool finishing_ = false;
    bool broken_ = false; // nothing can be written any more

    mutable std::mutex in_mutex_; // guards the rest
    Block *block_;
    Slot *slot_;
    Frame frame_{};
    uint64_t got_ = 0;      // bytes of the frame
    uint64_t body_got_ = 0; // bytes of what follows it
    char small_[1024 + 64] = {};
    std::deque<Request> requests_;
    std::string problem_;
    std::string told_; // the peer's last answer
    uint64_t tellings_ = 0;
    Clock::time_point closed_at_;
    std::atomic<uint32_t> fetched_{0};
    std::atomic<bool> open_{true};
};

} // namespace mock

#endif
