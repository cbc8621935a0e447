#include "wire.h"

#include <algorithm>
#include <map>
#include <thread>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "counters.h"

namespace mock {
namespace {

constexpr uint32_t FRAME_MAGIC = 0x4d4b5752;
constexpr uint64_t MOST_AT_ONCE = 4 << 20; // bytes of one connection before others have their turn
constexpr std::chrono::seconds LINGER(10); // how long a closed connection waits for its peer's end

// The one thread that takes in what comes over the network.
class Loop {
public:
    Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
        if (!epoll_) {
            fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("epoll_create1").c_str());
        }
        SignalsBlocked blocked;
        std::thread([this] { run(); }).detach();
    }

    void add(const std::shared_ptr<Watched> &watched) {
        std::lock_guard<std::mutex> lock(mutex_);
        watched_[watched->file()] = watched;
        control(EPOLL_CTL_ADD, watched->file(), EPOLLIN);
    }

    void forget(int file) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (watched_.erase(file) > 0) {
            control(EPOLL_CTL_DEL, file, 0);
        }
    }

    void control(int what, int file, uint32_t events) const {
        epoll_event event{};
        event.events = events;
        event.data.fd = file;
        epoll_ctl(epoll_.get(), what, file, &event);
    }

private:
    void run() {
        pthread_setname_np(pthread_self(), "mock-network");
        auto ticked = Clock::now();
        for (;;) {
            epoll_event events[64];
            const int count = epoll_wait(epoll_.get(), events, 64, 1000);
            for (int i = 0; i < count; i++) {
                serve(events[i].data.fd, events[i].events);
            }
            if (seconds_since(ticked) >= 1) {
                ticked = Clock::now();
                tick();
            }
        }
    }

    void serve(int file, uint32_t events) {
        std::shared_ptr<Watched> watched;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            const auto found = watched_.find(file);
            if (found == watched_.end()) {
                return;
            }
            watched = found->second;
        }
        if (!watched->ready(events)) {
            remove(watched);
        }
    }

    void tick() {
        std::vector<std::shared_ptr<Watched>> all;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            for (const auto &entry : watched_) {
                all.push_back(entry.second);
            }
        }
        for (const auto &watched : all) {
            if (!watched->tick()) {
                remove(watched);
            }
        }
    }

    void remove(const std::shared_ptr<Watched> &watched) {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = watched_.find(watched->file());
        if (found != watched_.end() && found->second == watched) {
            control(EPOLL_CTL_DEL, watched->file(), 0);
            watched_.erase(found);
        }
    }

    const Descriptor epoll_;
    std::mutex mutex_;
    std::map<int, std::shared_ptr<Watched>> watched_;
};

Loop &loop() {
    static Loop &object = *new Loop;
    return object;
}

} // namespace

void watch(const std::shared_ptr<Watched> &watched) { loop().add(watched); }

void unwatch(int file) { loop().forget(file); }

void watch_writing(const Watched &watched, bool writing) {
    loop().control(EPOLL_CTL_MOD, watched.file(), writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

Wire::Wire(Descriptor socket, std::string name, Block *block, Slot *slot, const ArenaView &arena, const Board *board,
           std::string comm)
    : socket_(std::move(socket)), name_(std::move(name)), arena_(arena), board_(board), comm_(std::move(comm)),
      block_(block), slot_(slot) {}

void Wire::post(const Post &post, uint32_t count) { send(Kind::Post, count, 0, &post, sizeof(post)); }

void Wire::acknowledge(uint32_t count) { send(Kind::Acknowledge, count, 0, nullptr, 0); }

void Wire::offer(uint64_t kinds, uint32_t building) { send(Kind::Offer, kinds, building, nullptr, 0); }

void Wire::tell_state(const Header &own) {
    const auto state = static_cast<uint32_t>(own.state.load());
    const size_t length = own.state.load() == State::Failed ? strnlen(own.fault_text, sizeof(own.fault_text)) : 0;
    send(Kind::State, state, own.fault_code, own.fault_text, length);
}

void Wire::fetch(uint64_t offset, uint64_t bytes, char *target) {
    {
        std::lock_guard<std::mutex> lock(in_mutex_);
        requests_.push_back({bytes, target});
    }
    send(Kind::Fetch, offset, bytes, nullptr, 0);
}

void Wire::forget() {
    std::lock_guard<std::mutex> lock(in_mutex_);
    for (Request &request : requests_) {
        request.target = nullptr;
    }
}

std::string Wire::ask_elsewhere() {
    const auto tellings = [this] {
        std::lock_guard<std::mutex> lock(in_mutex_);
        return tellings_;
    };
    const uint64_t before = tellings();
    send(Kind::Ask, 0, 0, nullptr, 0);
    for (int i = 0; i < 40 && open_ && tellings() == before;
         i++) { // a fifth of a second: the peer's thread is there or not
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::lock_guard<std::mutex> lock(in_mutex_);
    return tellings_ != before ? told_ : "";
}

void Wire::close() {
    {
        std::lock_guard<std::mutex> lock(in_mutex_);
        block_ = nullptr;
        slot_ = nullptr;
        closed_at_ = Clock::now();
        for (Request &request : requests_) {
            request.target = nullptr;
        }
    }
    // A process that ends now would take the last words with it.
    for (int i = 0; i < 2000; i++) {
        {
            std::lock_guard<std::mutex> lock(out_mutex_);
            finishing_ = true;
            if (out_.empty() || broken_) {
                shutdown(socket_.get(), SHUT_WR);
                return;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

std::string Wire::problem() const {
    std::lock_guard<std::mutex> lock(in_mutex_);
    return problem_;
}

void Wire::send(Kind kind, uint64_t a, uint64_t b, const void *body, uint64_t bytes) {
    const Frame frame{FRAME_MAGIC, static_cast<uint32_t>(kind), a, b, bytes};
    Chunk chunk{std::vector<char>(sizeof(frame) + bytes), nullptr, sizeof(frame) + bytes};
    std::memcpy(chunk.own.data(), &frame, sizeof(frame));
    if (bytes > 0) {
        std::memcpy(chunk.own.data() + sizeof(frame), body, bytes);
    }
    std::lock_guard<std::mutex> lock(out_mutex_);
    out_.push_back(std::move(chunk));
    out_.back().data = out_.back().own.data();
    flush();
}

void Wire::send_data(uint64_t offset, uint64_t bytes) {
    const Frame frame{FRAME_MAGIC, static_cast<uint32_t>(Kind::Data), offset, 0, bytes};
    Chunk head{std::vector<char>(sizeof(frame)), nullptr, sizeof(frame)};
    std::memcpy(head.own.data(), &frame, sizeof(frame));
    std::lock_guard<std::mutex> lock(out_mutex_);
    out_.push_back(std::move(head));
    out_.back().data = out_.back().own.data();
    out_.push_back({{}, arena_.base + offset, bytes});
    flush();
}

// As much as goes without waiting; the network thread does the rest.
void Wire::flush() {
    while (!out_.empty() && !broken_) {
        iovec parts[8];
        size_t count = 0;
        for (auto chunk = out_.begin(); chunk != out_.end() && count < 8; ++chunk, ++count) {
            parts[count] = {const_cast<char *>(chunk->data), chunk->bytes};
        }
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = count;
        ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            broken_ = errno != EAGAIN && errno != EINTR;
            break;
        }
        while (sent > 0 || (!out_.empty() && out_.front().bytes == 0)) {
            const uint64_t part = std::min<uint64_t>(static_cast<uint64_t>(sent), out_.front().bytes);
            out_.front().data += part;
            out_.front().bytes -= part;
            sent -= static_cast<ssize_t>(part);
            if (out_.front().bytes == 0) {
                out_.pop_front();
            }
        }
    }
    if (broken_) {
        out_.clear(); // reading will tell why
    }
    if (writing_ != !out_.empty()) {
        writing_ = !out_.empty();
        watch_writing(*this, writing_);
    }
    if (finishing_ && out_.empty()) {
        shutdown(socket_.get(), SHUT_WR);
    }
}

bool Wire::ready(uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        std::lock_guard<std::mutex> lock(out_mutex_);
        flush();
    }
    try {
        return (events & ~static_cast<uint32_t>(EPOLLOUT)) == 0 || receive();
    } catch (const std::exception &error) {
        lose(error.what());
        return false;
    }
}

bool Wire::tick() {
    std::lock_guard<std::mutex> lock(in_mutex_);
    return block_ != nullptr || Clock::now() - closed_at_ < LINGER;
}

bool Wire::receive() {
    uint64_t total = 0;
    while (total < MOST_AT_ONCE) {
        std::unique_lock<std::mutex> lock(in_mutex_);
        char waste[16384];
        char *target = nullptr;
        uint64_t wanted = 0;
        if (got_ < sizeof(frame_)) {
            target = reinterpret_cast<char *>(&frame_) + got_;
            wanted = sizeof(frame_) - got_;
        } else {
            wanted = frame_.bytes - body_got_;
            if (static_cast<Kind>(frame_.kind) != Kind::Data) {
                target = small_ + body_got_;
            } else if (requests_.front().target != nullptr) {
                target = requests_.front().target + body_got_;
            } else {
                target = waste;
                wanted = std::min<uint64_t>(wanted, sizeof(waste));
            }
        }
        const ssize_t count = recv(socket_.get(), target, wanted, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        if (count <= 0) {
            const std::string why = count == 0 ? "the other side closed it" : std::strerror(errno);
            lock.unlock();
            lose(why);
            return false;
        }
        total += static_cast<uint64_t>(count);
        if (got_ < sizeof(frame_)) {
            got_ += static_cast<uint64_t>(count);
            if (got_ == sizeof(frame_)) {
                begin();
            }
        } else {
            body_got_ += static_cast<uint64_t>(count);
        }
        if (got_ == sizeof(frame_) && body_got_ == frame_.bytes) {
            finish();
            got_ = 0;
            body_got_ = 0;
        }
    }
    return true;
}

// Every length is checked before anything follows it.
void Wire::begin() {
    if (frame_.magic != FRAME_MAGIC || frame_.kind > static_cast<uint32_t>(Kind::Tell)) {
        violated("no message");
    }
    switch (static_cast<Kind>(frame_.kind)) {
    case Kind::Post:
        if (frame_.bytes != sizeof(Post))
            violated("a post of a wrong length");
        return;
    case Kind::State:
        if (frame_.bytes >= sizeof(mirror.fault_text))
            violated("a state that is too long");
        return;
    case Kind::Tell:
        if (frame_.bytes >= sizeof(small_))
            violated("an answer that is too long");
        return;
    case Kind::Fetch:
        if (frame_.bytes != 0 || frame_.a > arena_.bytes || frame_.b > arena_.bytes - frame_.a) {
            violated("a request for what lies outside device memory");
        }
        return;
    case Kind::Data:
        if (requests_.empty() || requests_.front().bytes != frame_.bytes)
            violated("data that nobody asked for");
        return;
    default:
        if (frame_.bytes != 0)
            violated("a message that is too long");
    }
}

// What a peer on this machine would do itself.
void Wire::finish() {
    switch (static_cast<Kind>(frame_.kind)) {
    case Kind::Post:
        if (slot_ != nullptr) {
            const auto count = static_cast<uint32_t>(frame_.a);
            std::memcpy(&slot_->posts[(count - 1) % POSTS], small_, sizeof(Post));
            mirror.serial = slot_->posts[(count - 1) % POSTS].serial;
            mirror.executing = static_cast<uint32_t>(slot_->posts[(count - 1) % POSTS].signature.op);
            slot_->posted.store(count);
            ring(block_->header.operations);
        }
        return;
    case Kind::Acknowledge:
        if (slot_ != nullptr) {
            slot_->acknowledged.store(static_cast<uint32_t>(frame_.a));
            ring(block_->header.operations);
        }
        return;
    case Kind::Offer:
        mirror.building = static_cast<uint32_t>(frame_.b);
        if (slot_ != nullptr) {
            slot_->kinds.fetch_or(frame_.a);
            ring(block_->header.links);
        }
        return;
    case Kind::State:
        mirror.fault_code = static_cast<uint32_t>(frame_.b);
        copy_text(mirror.fault_text, sizeof(mirror.fault_text), std::string(small_, frame_.bytes));
        mirror.state = frame_.a == static_cast<uint64_t>(State::Failed) ? State::Failed : State::Left;
        break;
    case Kind::Fetch: send_data(frame_.a, frame_.b); return;
    case Kind::Ask: {
        const std::string text = elsewhere(board_, comm_).substr(0, sizeof(small_) - 1);
        const Header *own = block_ != nullptr ? &block_->header : nullptr;
        const uint64_t executing = own != nullptr ? own->executing.load() : 0;
        const uint64_t building = own != nullptr ? own->building.load() : 0;
        send(Kind::Tell, executing | building << 32, own != nullptr ? own->serial.load() : 0, text.data(), text.size());
        return;
    }
    case Kind::Tell:
        mirror.executing = static_cast<uint32_t>(frame_.a);
        mirror.building = static_cast<uint32_t>(frame_.a >> 32);
        mirror.serial = frame_.b;
        told_.assign(small_, frame_.bytes);
        tellings_++;
        return;
    case Kind::Data:
        count(Counter::TransferredBytes, frame_.bytes);
        count(Counter::NetworkBytes, frame_.bytes);
        requests_.pop_front();
        fetched_++;
        if (block_ != nullptr) {
            ring(block_->header.operations);
        }
        return;
    }
    if (block_ != nullptr) {
        alarm(block_->header.operations);
        alarm(block_->header.links);
    }
}

void Wire::violated(const char *what) const { throw std::runtime_error(format("it sent %s", what)); }

void Wire::lose(const std::string &why) {
    std::lock_guard<std::mutex> lock(in_mutex_);
    problem_ = why;
    open_ = false;
    if (block_ != nullptr) {
        alarm(block_->header.operations);
        alarm(block_->header.links);
    }
}

} // namespace mock
