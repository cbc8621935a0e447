// The root's side of a world made from root info: one thread that takes in the ranks and tells each who the others are.

#include "gathering.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "calls.h"
#include "socket.h"

namespace mock {
namespace {

constexpr std::chrono::seconds ANSWER_TIME(5);   // for a rank to take its answer
constexpr std::chrono::seconds INTRODUCTION(10); // for a caller to say who it is

class Gathering {
public:
    Gathering(Descriptor listener, std::string name, std::shared_ptr<Network> network, std::chrono::seconds patience)
        : listener_(std::move(listener)), name_(std::move(name)), network_(std::move(network)), patience_(patience),
          bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    // A caller from another machine, which has proved that it knows the root info.
    void take(Descriptor socket) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            arrived_.push_back(std::move(socket));
        }
        const uint64_t one = 1;
        if (write(bell_.get(), &one, sizeof(one)) < 0) {
            return; // it rings already
        }
    }

    void run() {
        while (!complete() && !late()) {
            wait();
            accept_all();
            for (size_t i = 0; i < guests_.size();) {
                if (listen_to(&guests_[i])) {
                    i++;
                } else {
                    guests_.erase(guests_.begin() + static_cast<long>(i));
                }
            }
        }
        if (network_ != nullptr) {
            stop_receiving(name_);
        }
        listener_.reset();
        answer_all();
    }

private:
    struct Guest {
        Descriptor socket;
        pid_t pid = 0; // 0: another machine's
        size_t got = 0;
        Clock::time_point since = Clock::now();
        Join join{};
        bool joined() const { return got == sizeof(join); }
    };

    bool complete() const { return size_ > 0 && joined() == size_; }
    bool late() const { return size_ > 0 && Clock::now() >= limit_; }
    size_t joined() const {
        return static_cast<size_t>(
            std::count_if(guests_.begin(), guests_.end(), [](const Guest &guest) { return guest.joined(); }));
    }

    void wait() {
        std::vector<pollfd> files{{listener_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}};
        int pause = size_ > 0 ? milliseconds_until(limit_) : -1; // nobody has come: sleep until somebody does
        for (const Guest &guest : guests_) {
            files.push_back({guest.socket.get(), POLLIN, 0});
            if (!guest.joined()) {
                const int left = milliseconds_until(guest.since + INTRODUCTION);
                pause = pause < 0 ? left : std::min(pause, left);
            }
        }
        poll(files.data(), files.size(), pause);
        uint64_t rung = 0;
        if (read(bell_.get(), &rung, sizeof(rung)) < 0) {
            return; // it did not ring
        }
    }

    void accept_all() {
        for (;;) {
            Guest guest;
            guest.socket = accept_from(listener_, &guest.pid);
            if (!guest.socket) {
                if (errno == EMFILE || errno == ENFILE) { // it would be asked again at once, for ever
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                }
                break;
            }
            guests_.push_back(std::move(guest));
        }
        std::lock_guard<std::mutex> lock(mutex_);
        for (Descriptor &socket : arrived_) {
            Guest guest;
            guest.socket = std::move(socket);
            guests_.push_back(std::move(guest));
        }
        arrived_.clear();
    }

    // False when the guest has gone or was sent away.
    bool listen_to(Guest *guest) {
        char more = 0;
        char *place = guest->joined() ? &more : reinterpret_cast<char *>(&guest->join) + guest->got;
        const size_t room = guest->joined() ? 1 : sizeof(Join) - guest->got;
        const ssize_t length = recv(guest->socket.get(), place, room, MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
            return guest->joined() || Clock::now() < guest->since + INTRODUCTION;
        }
        if (length <= 0 || guest->joined()) {
            return false; // a joined rank has nothing more to say: its process ended
        }
        guest->got += static_cast<size_t>(length);
        return !guest->joined() || admit(guest);
    }

    bool admit(Guest *guest) {
        Join &join = guest->join;
        join.name[sizeof(join.name) - 1] = '\0';
        if (join.magic != ROOT_INFO_MAGIC) {
            return false;
        }
        if (guest->pid <= 0) {
            guest->pid = join.pid;
        }
        const std::string reason = objection(*guest);
        if (!reason.empty()) {
            answer(*guest, HCCL_E_PARA, reason, {});
            return false;
        }
        if (size_ == 0) {
            size_ = join.size;
            comm_name_ = join.name;
            limit_ = Clock::now() + patience_;
        }
        return true;
    }

    std::string objection(const Guest &guest) const {
        const Join &join = guest.join;
        const int process = static_cast<int>(guest.pid);
        if (join.size == 0 || join.size > MOST_RANKS || join.rank >= join.size) {
            return format("EI0003: rank %u and nRanks %u: nRanks must be from 1 to %u, rank below it", join.rank,
                          join.size, MOST_RANKS);
        }
        if (size_ == 0) {
            return {};
        }
        if (join.size != size_) {
            return format("EI0003: rank %u (process %d) says nRanks %u, but those that came before said %u", join.rank,
                          process, join.size, size_);
        }
        if (comm_name_ != join.name) {
            return format("EI0003: rank %u (process %d) names the communicator [%s], but those that came before [%s]",
                          join.rank, process, join.name, comm_name_.c_str());
        }
        for (const Guest &other : guests_) {
            if (&other != &guest && other.joined() && other.join.rank == join.rank) {
                return format("EI0003: rank %u is held by process %d already; process %d claims it too", join.rank,
                              static_cast<int>(other.pid), process);
            }
        }
        return {};
    }

    void answer(const Guest &guest, HcclResult code, const std::string &reason,
                const std::vector<Introduction> &ranks) const {
        const auto limit = Clock::now() + ANSWER_TIME;
        Answer head{};
        head.code = static_cast<uint32_t>(code);
        head.count = static_cast<uint32_t>(ranks.size());
        copy_text(head.reason, sizeof(head.reason), reason);
        if (send_whole(guest.socket, &head, sizeof(head), limit)) { // read whole: a message of its own
            send_whole(guest.socket, ranks.data(), ranks.size() * sizeof(Introduction), limit);
        }
    }

    void answer_all() const {
        std::vector<Introduction> ranks(size_);
        std::vector<bool> present(size_);
        for (const Guest &guest : guests_) {
            if (guest.joined()) {
                ranks[guest.join.rank] = guest.join.introduction;
                present[guest.join.rank] = true;
            }
        }
        std::string absent;
        for (uint32_t rank = 0; rank < size_; rank++) {
            if (!present[rank]) {
                absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
            }
        }
        const std::string reason = absent.empty()
                                       ? ""
                                       : format("EI0015: the root waited %lld s for %u ranks; absent: rank(s) %s",
                                                static_cast<long long>(patience_.count()), size_, absent.c_str());
        for (const bool own : {false, true}) { // the own process last: it may end as soon as it has its answer
            for (const Guest &guest : guests_) {
                if (!guest.joined() || (guest.pid == getpid()) != own) {
                    continue;
                }
                if (absent.empty()) {
                    answer(guest, HCCL_SUCCESS, "", ranks);
                } else {
                    answer(guest, HCCL_E_TIMEOUT, reason, {});
                }
            }
        }
    }

    Descriptor listener_;
    const std::string name_;
    const std::shared_ptr<Network> network_;
    const std::chrono::seconds patience_;
    const Descriptor bell_;
    std::mutex mutex_;
    std::vector<Descriptor> arrived_;
    Clock::time_point limit_;
    std::vector<Guest> guests_;
    uint32_t size_ = 0; // as the first rank said it
    std::string comm_name_;
};

} // namespace

void start_gathering(Descriptor listener, const std::string &name, const std::shared_ptr<Network> &network,
                     std::chrono::seconds patience) {
    auto gathering = std::make_shared<Gathering>(std::move(listener), name, network, patience);
    if (network != nullptr) {
        receive_callers(name, [gathering](Descriptor socket) { gathering->take(std::move(socket)); });
    }
    try {
        SignalsBlocked blocked;
        std::thread([gathering, name] {
            pthread_setname_np(pthread_self(), "mock-root-info");
            try {
                gathering->run();
            } catch (const std::exception &error) {
                stop_receiving(name);
                warn_once(std::string("root info: ") + error.what());
            }
        }).detach();
    } catch (const std::system_error &) {
        stop_receiving(name);
        throw;
    }
}

} // namespace mock
