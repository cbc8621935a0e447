#include "calls.h"

#include <algorithm>
#include <array>
#include <map>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "comm.h"
#include "counters.h"
#include "network.h"
#include "proof.h"
#include "wire.h"

namespace mock {
namespace {

constexpr uint32_t MAGIC = 0x4d4b4843;
constexpr int BACKLOG = 4096;
constexpr size_t MOST_STRANGERS = 1024;            // callers that have not proved anything yet
constexpr std::chrono::seconds HANDSHAKE(10);      // and how long they may take
constexpr std::chrono::milliseconds ATTEMPT(1000); // a caller's patience before it tries again

using Nonce = std::array<unsigned char, 16>;

// The three messages of a call. Both sides run the same build of the mock, so plain structures do.
struct Challenge {
    uint32_t magic;
    uint32_t version;
    Nonce nonce;
};

struct Request {
    uint32_t magic;
    uint32_t from;
    uint32_t to;
    uint32_t reserved;
    char comm[40];
    char members[40];
    Nonce nonce;
    Sum proof;
};

struct Reply {
    uint32_t magic;
    uint32_t code; // HcclResult; AGAIN: call later
    char reason[256];
    Sum proof;
};

Nonce make_nonce() {
    Nonce nonce;
    if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("getrandom").c_str());
    }
    return nonce;
}

std::string bytes_of(const Nonce &nonce) { return std::string(nonce.begin(), nonce.end()); }

Sum caller_proof(const std::string &key, const Challenge &challenge, Request request) {
    request.proof = {};
    return keyed_hash(key, "caller" + bytes_of(challenge.nonce) +
                               std::string(reinterpret_cast<const char *>(&request), sizeof(request)));
}

Sum answer_proof(const std::string &key, const Request &request, Reply reply) {
    reply.proof = {};
    return keyed_hash(key, "answer" + bytes_of(request.nonce) +
                               std::string(reinterpret_cast<const char *>(&reply), sizeof(reply)));
}

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

Address make_address(const std::string &host, uint16_t port) {
    Address address;
    auto *v4 = reinterpret_cast<sockaddr_in *>(&address.storage);
    auto *v6 = reinterpret_cast<sockaddr_in6 *>(&address.storage);
    if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address.size = sizeof(*v4);
    } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        address.size = sizeof(*v6);
    } else {
        fault(HCCL_E_PARA, "EI0004: [%s] is not an IP address", host.c_str());
    }
    return address;
}

Descriptor make_socket(const Address &address) {
    Descriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("socket").c_str());
    }
    return socket;
}

// A peer whose machine or cable is gone says nothing: the kernel finds out by asking it.
void tune(const Descriptor &socket) {
    const auto set = [&](int level, int name, int value) {
        setsockopt(socket.get(), level, name, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 5);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
}

std::string name_of(const sockaddr_storage &storage) {
    char text[INET6_ADDRSTRLEN] = {};
    uint16_t port = 0;
    if (storage.ss_family == AF_INET) {
        const auto *v4 = reinterpret_cast<const sockaddr_in *>(&storage);
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
        port = ntohs(v4->sin_port);
    } else if (storage.ss_family == AF_INET6) {
        const auto *v6 = reinterpret_cast<const sockaddr_in6 *>(&storage);
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
        port = ntohs(v6->sin6_port);
    }
    return format("%s port %u", text, port);
}

struct Called {
    std::mutex mutex;
    std::map<std::pair<std::string, uint32_t>, std::weak_ptr<Comm>> comms;
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
class Stranger : public Watched {
public:
    Stranger(Descriptor socket, std::string name, std::shared_ptr<Door> door);
    ~Stranger() override { waiting--; }
    int file() const override { return socket_.get(); }
    bool ready(uint32_t events) override;
    bool tick() override;
    static std::atomic<size_t> waiting;

private:
    void decide();
    void refuse(const std::string &why) const;
    bool reply(const std::string &key, HcclResult code, const std::string &reason);

    Descriptor socket_;
    const std::string name_;
    const std::shared_ptr<Door> door_;
    const Clock::time_point start_ = Clock::now();
    Challenge challenge_{};
    Request request_{};
    size_t got_ = 0;
};
std::atomic<size_t> Stranger::waiting{0};

// A listening socket. It ends when the last communicator of its jobs has.
class Door : public Listener, public Watched, public std::enable_shared_from_this<Door> {
public:
    Door(Descriptor socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}

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
            Descriptor socket(accept4(socket_.get(), reinterpret_cast<sockaddr *>(&storage), &size,
                                      SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket) {
                return true;
            }
            if (Stranger::waiting < MOST_STRANGERS) {
                watch(std::make_shared<Stranger>(std::move(socket), name_of(storage), shared_from_this()));
            }
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

private:
    const Descriptor socket_;
    const std::string name_;
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

Stranger::Stranger(Descriptor socket, std::string name, std::shared_ptr<Door> door)
    : socket_(std::move(socket)), name_(std::move(name)), door_(std::move(door)) {
    waiting++;
    tune(socket_);
    challenge_ = {MAGIC, 1, make_nonce()};
    send(socket_.get(), &challenge_, sizeof(challenge_), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Stranger::ready(uint32_t) {
    while (got_ < sizeof(request_)) {
        const ssize_t count = recv(socket_.get(), reinterpret_cast<char *>(&request_) + got_, sizeof(request_) - got_,
                                   MSG_DONTWAIT);
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
        if (got_ >= sizeof(request_.magic) && request_.magic != MAGIC) {
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

bool Stranger::tick() {
    if (Clock::now() - start_ < HANDSHAKE) {
        return true;
    }
    refuse("proved nothing in time");
    return false;
}

void Stranger::refuse(const std::string &why) const {
    count(Counter::RefusedCalls, 1);
    warn_once(format("a call from %s to %s was refused: it %s", name_.c_str(), door_->name().c_str(), why.c_str()));
}

void Stranger::decide() {
    const std::string key = door_->key_of(challenge_, request_);
    if (key.empty()) {
        refuse("does not belong to this job (its proof is wrong)");
        return;
    }
    request_.comm[sizeof(request_.comm) - 1] = '\0';
    request_.members[sizeof(request_.members) - 1] = '\0';
    const std::shared_ptr<Comm> comm = find_called(request_.comm, request_.to);
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

bool Stranger::reply(const std::string &key, HcclResult code, const std::string &reason) {
    Reply reply{};
    reply.magic = MAGIC;
    reply.code = static_cast<uint32_t>(code);
    copy_text(reply.reason, sizeof(reply.reason), reason);
    reply.proof = answer_proof(key, request_, reply);
    return send(socket_.get(), &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(reply);
}

// Waits for readiness of a caller's socket until the attempt is over.
bool wait_for_file(const Descriptor &socket, short events, Clock::time_point limit) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    pollfd file{socket.get(), events, 0};
    return left > 0 && poll(&file, 1, static_cast<int>(left)) == 1;
}

bool read_all(const Descriptor &socket, void *data, size_t bytes, Clock::time_point limit) {
    for (size_t got = 0; got < bytes;) {
        const ssize_t count = recv(socket.get(), static_cast<char *>(data) + got, bytes - got, MSG_DONTWAIT);
        if (count > 0) {
            got += static_cast<size_t>(count);
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for_file(socket, POLLIN, limit)) {
            return false;
        }
    }
    return true;
}

bool connect_in_time(const Descriptor &socket, const Address &address, Clock::time_point limit, std::string *why) {
    int error = 0;
    if (connect(socket.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.size) != 0) {
        error = errno;
        socklen_t size = sizeof(error);
        if (error == EINPROGRESS) {
            error = ETIMEDOUT;
            if (wait_for_file(socket, POLLOUT, limit)) {
                getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
            }
        }
    }
    *why = error == 0 ? "" : std::strerror(error);
    return error == 0;
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
        Descriptor socket = make_socket(address);
        const int yes = 1;
        setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        if (bind(socket.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.size) != 0 ||
            listen(socket.get(), BACKLOG) != 0) {
            fault(HCCL_E_TCP_CONNECT, "EI0019: cannot listen on %s port %u: %s (HCCL_IF_BASE_PORT chooses other ports)",
                  host.c_str(), port, std::strerror(errno));
        }
        door = std::make_shared<Door>(std::move(socket), format("%s port %u", host.c_str(), port));
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

void hide_from_calls(const Comm &comm) {
    Called &all = called();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.comms.erase({comm.plan().id, comm.rank()});
}

bool call_peer(Comm &comm, uint32_t peer, std::string *why) {
    const Network &network = *comm.plan().network;
    const Member &member = comm.plan().members[peer];
    const auto limit = Clock::now() + ATTEMPT;
    const Address address = make_address(network.hosts[member.server], network.port(member.device));
    Descriptor socket = make_socket(address);
    if (!connect_in_time(socket, address, limit, why)) {
        return false;
    }
    tune(socket);
    *why = "whoever listens there does not answer as a rank of this job does";
    Challenge challenge{};
    if (!read_all(socket, &challenge, sizeof(challenge), limit) || challenge.magic != MAGIC) {
        return false;
    }
    Request request{};
    request.magic = MAGIC;
    request.from = comm.rank();
    request.to = peer;
    copy_text(request.comm, sizeof(request.comm), comm.plan().id);
    copy_text(request.members, sizeof(request.members), comm.members_digest());
    request.nonce = make_nonce();
    request.proof = caller_proof(network.key, challenge, request);
    Reply reply{};
    if (send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(request) ||
        !read_all(socket, &reply, sizeof(reply), limit) || reply.magic != MAGIC) {
        return false;
    }
    const Sum proof = answer_proof(network.key, request, reply);
    if (!same(proof.data(), reply.proof.data(), proof.size())) {
        return false;
    }
    reply.reason[sizeof(reply.reason) - 1] = '\0';
    *why = reply.reason;
    if (reply.code == HCCL_E_AGAIN) {
        return false;
    }
    if (reply.code != HCCL_SUCCESS) {
        fault(static_cast<HcclResult>(reply.code), "EI0005: %s refused the link: %s", comm.peer_name(peer).c_str(),
              reply.reason);
    }
    comm.attach_wire(peer, std::move(socket));
    return true;
}

} // namespace mock
