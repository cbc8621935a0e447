// The side that listens: callers prove themselves, then they become the connection of a communicator, or are handed over.

#include <algorithm>
#include <deque>
#include <map>
#include <thread>

#include <fcntl.h>

#include "calls.h"
#include "comm.h"
#include "counters.h"
#include "handshake.h"
#include "network.h"
#include "wire.h"

namespace mock {
namespace {

constexpr int BACKLOG = 4096;
constexpr size_t MOST_STRANGERS = 256; // callers that have not proved anything yet
constexpr uint64_t MOST_WARNINGS = 16; // about refused calls

struct Called {
    std::mutex mutex;
    std::map<std::pair<std::string, uint32_t>, std::weak_ptr<Comm>> comms;
    std::map<std::string, std::function<void(Descriptor)>> names;
};

Called &called() {
    static Called &object = *new Called;
    return object;
}

std::shared_ptr<Comm> find_called(const std::string &id, uint32_t rank) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.comms.find({id, rank});
    return found == all.comms.end() ? nullptr : found->second.lock();
}

class Door;

// A caller that has not been let in yet.
class PendingConnection : public Watched {
public:
    PendingConnection(Descriptor socket, std::string name, std::shared_ptr<Door> door);
    int file() const override { return file_; }
    bool ready(uint32_t events) override;
    bool tick() override;
    void expel();

private:
    void decide();
    void refuse(const std::string &why) const;
    bool reply(const std::string &key, HcclResult code, const std::string &reason);
    void hand_over(const std::string &key);

    Descriptor socket_;
    const int file_; // also when the socket is another one's: the network thread knows this caller by it
    const std::string name_;
    const std::shared_ptr<Door> door_;
    const Clock::time_point start_ = Clock::now();
    Challenge challenge_{};
    Request request_{};
    size_t got_ = 0;
};

// Callers that have not proved anything yet, the oldest first. They take room from nobody: the oldest goes when there are
// too many, and whoever belongs to the job is through in a moment. Only the network thread uses it.
class WaitingRoom {
public:
    void enter(const std::shared_ptr<PendingConnection> &pending) {
        make_room(MOST_STRANGERS - 1);
        waiting_.push_back(pending);
        watch(pending);
    }
    // Sends the oldest away if more than `most` are left.
    void make_room(size_t most) {
        const auto gone = [](const std::weak_ptr<PendingConnection> &one) { return one.expired(); };
        waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), gone), waiting_.end());
        if (waiting_.size() <= most) {
            return;
        }
        const std::shared_ptr<PendingConnection> oldest = waiting_.front().lock();
        waiting_.pop_front();
        if (oldest != nullptr) {
            oldest->expel();
        }
    }

private:
    std::deque<std::weak_ptr<PendingConnection>> waiting_;
};

WaitingRoom &waiting_room() {
    static WaitingRoom &object = *new WaitingRoom;
    return object;
}

// A listening socket. It ends when the last communicator of its jobs has.
class Door : public Listener, public Watched, public std::enable_shared_from_this<Door> {
public:
    explicit Door(Descriptor socket) : socket_(std::move(socket)) {
        sockaddr_storage storage{};
        socklen_t size = sizeof(storage);
        getsockname(socket_.get(), reinterpret_cast<sockaddr *>(&storage), &size);
        port_ = port_of(storage);
        name_ = name_of(storage);
    }

    // Before the socket is closed and its number is another one's.
    ~Door() override { unwatch(socket_.get()); }

    void serve(const std::shared_ptr<Network> &job) {
        std::lock_guard<std::mutex> lock(mutex_);
        jobs_.erase(std::remove_if(jobs_.begin(), jobs_.end(), [](const auto &other) { return other.expired(); }),
                    jobs_.end());
        jobs_.push_back(job);
    }
    int file() const override { return socket_.get(); }
    bool ready(uint32_t) override {
        for (;;) {
            sockaddr_storage storage{};
            socklen_t size = sizeof(storage);
            Descriptor socket(
                accept4(socket_.get(), reinterpret_cast<sockaddr *>(&storage), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket) {
                if (errno == EMFILE || errno == ENFILE) { // it would be called again at once, for ever
                    waiting_room().make_room(0);
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                }
                return true;
            }
            waiting_room().enter(
                std::make_shared<PendingConnection>(std::move(socket), name_of(storage), shared_from_this()));
        }
    }
    // The key with which the caller has proved itself; empty if it has not.
    std::string key_of(const Challenge &challenge, const Request &request) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (const std::weak_ptr<Network> &job : jobs_) {
            const std::shared_ptr<Network> network = job.lock();
            if (network != nullptr) {
                const Sum proof = caller_proof(network->key, challenge, request);
                if (same(proof.data(), request.proof.data(), proof.size())) {
                    return network->key;
                }
            }
        }
        return {};
    }
    const std::string &name() const { return name_; }
    uint16_t port() const override { return port_; }

private:
    const Descriptor socket_;
    std::string name_;
    uint16_t port_ = 0;
    std::mutex mutex_;
    std::vector<std::weak_ptr<Network>> jobs_;
};

// Keeps the network thread from holding a door open: it watches this, which knows the door only as long as it lives.
class Porter : public Watched {
public:
    explicit Porter(const std::shared_ptr<Door> &door) : door_(door), file_(door->file()) {}
    int file() const override { return file_; }
    bool ready(uint32_t events) override {
        const std::shared_ptr<Door> door = door_.lock();
        return door != nullptr && door->ready(events);
    }
    bool tick() override { return !door_.expired(); }

private:
    const std::weak_ptr<Door> door_;
    const int file_;
};

PendingConnection::PendingConnection(Descriptor socket, std::string name, std::shared_ptr<Door> door)
    : socket_(std::move(socket)), file_(socket_.get()), name_(std::move(name)), door_(std::move(door)) {
    tune(socket_);
    challenge_ = {CALL_MAGIC, 1, make_nonce()};
    send(socket_.get(), &challenge_, sizeof(challenge_), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Whoever is late may have given up, and calls again.
bool PendingConnection::ready(uint32_t) {
    if (!tick()) {
        return false;
    }
    while (got_ < sizeof(request_)) {
        const ssize_t count =
            recv(socket_.get(), reinterpret_cast<char *>(&request_) + got_, sizeof(request_) - got_, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        if (count <= 0) {
            if (got_ > 0) {
                refuse("ended in the middle of a sentence");
            }
            return false;
        }
        got_ += static_cast<size_t>(count);
        if (got_ >= sizeof(request_.magic) && request_.magic != CALL_MAGIC) {
            refuse("does not speak the protocol of the mock");
            return false;
        }
    }
    try {
        decide();
    } catch (const std::exception &error) {
        refuse(error.what());
    }
    return false;
}

bool PendingConnection::tick() {
    if (Clock::now() - start_ < HANDSHAKE) {
        return true;
    }
    refuse("proved nothing in time");
    return false;
}

// The end of its connection is what the network thread sees next.
void PendingConnection::expel() {
    refuse("proved nothing, and others wait");
    shutdown(socket_.get(), SHUT_RDWR);
}

void PendingConnection::refuse(const std::string &why) const {
    static std::atomic<uint64_t> warnings{0};
    count(Counter::RefusedCalls);
    const uint64_t number = ++warnings;
    if (number > MOST_WARNINGS) {
        return;
    }
    const char *last = number == MOST_WARNINGS ? "; no further refusals are reported" : "";
    warn_once(format("a call from %s to %s was refused: it %s", name_.c_str(), door_->name().c_str(), why.c_str()) +
              last);
}

void PendingConnection::decide() {
    const std::string key = door_->key_of(challenge_, request_);
    if (key.empty()) {
        refuse("does not belong to this job (its proof is wrong)");
        return;
    }
    request_.name[sizeof(request_.name) - 1] = '\0';
    request_.members[sizeof(request_.members) - 1] = '\0';
    if (request_.members[0] == '\0') {
        hand_over(key);
        return;
    }
    const std::shared_ptr<Comm> comm = find_called(request_.name, request_.to);
    if (comm == nullptr) {
        reply(key, HCCL_E_AGAIN, "no such communicator yet");
        return;
    }
    const uint32_t from = request_.from;
    if (from >= comm->size() || from <= comm->rank() || comm->link(from).connected) {
        reply(key, HCCL_E_PARA, "no such rank, or it is connected already");
        return;
    }
    if (comm->members_digest() != request_.members) {
        const std::string reason = format("%s and %s were created with different lists of ranks",
                                          comm->peer_name(from).c_str(), comm->self().c_str());
        reply(key, HCCL_E_PARA, reason);
        comm->fail(HCCL_E_PARA, "EI0005: " + reason);
        return;
    }
    if (reply(key, HCCL_SUCCESS, "")) {
        // The network thread watches the same descriptor from now on as the connection.
        comm->attach_wire(from, std::move(socket_));
    }
}

// The network thread forgets and closes its own descriptor of the connection.
void PendingConnection::hand_over(const std::string &key) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.names.find(request_.name);
    if (found == all.names.end()) {
        reply(key, HCCL_E_NOT_FOUND, "this root info was used already");
        return;
    }
    Descriptor copy(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
    if (copy && reply(key, HCCL_SUCCESS, "")) {
        found->second(std::move(copy));
    }
}

bool PendingConnection::reply(const std::string &key, HcclResult code, const std::string &reason) {
    Reply reply{};
    reply.magic = CALL_MAGIC;
    reply.code = static_cast<uint32_t>(code);
    copy_text(reply.reason, sizeof(reply.reason), reason);
    reply.proof = answer_proof(key, request_, reply);
    return send(socket_.get(), &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(reply);
}

} // namespace

std::shared_ptr<Listener> listen_at(const std::string &host, uint16_t port, const std::shared_ptr<Network> &job) {
    static std::mutex &mutex = *new std::mutex;
    static auto &doors = *new std::map<std::pair<std::string, uint16_t>, std::weak_ptr<Door>>;
    std::lock_guard<std::mutex> lock(mutex);
    std::weak_ptr<Door> &known = doors[{host, port}];
    std::shared_ptr<Door> door = known.lock();
    if (door == nullptr) {
        const Address address = make_address(host, port);
        Descriptor socket = make_tcp_socket(address);
        const int yes = 1;
        setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        if (bind(socket.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.size) != 0 ||
            listen(socket.get(), BACKLOG) != 0) {
            fault(HCCL_E_TCP_CONNECT, "EI0019: cannot listen on %s port %u: %s (HCCL_IF_BASE_PORT chooses other ports)",
                  host.c_str(), port, std::strerror(errno));
        }
        door = std::make_shared<Door>(std::move(socket));
        door->serve(job); // before the first caller is heard
        watch(std::make_shared<Porter>(door));
        known = door;
    } else {
        door->serve(job);
    }
    return door;
}

void answer_calls(const std::shared_ptr<Comm> &comm) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.comms[{comm->plan().id, comm->rank()}] = comm;
}

void receive_callers(const std::string &name, std::function<void(Descriptor)> take) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.names[name] = std::move(take);
}

void stop_receiving(const std::string &name) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.names.erase(name);
}

void hide_from_calls(const Comm &comm) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.comms.erase({comm.plan().id, comm.rank()});
}

} // namespace mock
