// Root info: the root's process listens, all ranks come, the root tells each who the others are.

#include <array>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>

#include "creation.h"
#include "socket.h"

namespace mock {
namespace {

constexpr uint32_t MAGIC = 0x48525449;
constexpr uint32_t MOST_RANKS = 4096;

// What the 4108 bytes hold.
struct Content {
    uint32_t magic;
    int32_t root; // process id, for messages
    char id[40];
    char name[128]; // of the communicator, unless the configuration gives one
};
static_assert(sizeof(Content) <= HCCL_ROOT_INFO_BYTES, "root info");

struct Join {
    uint32_t magic;
    uint32_t size;
    uint32_t rank;
    int32_t device;
    int32_t pid;
    char name[128]; // from the configuration
};

struct Answer {
    uint32_t code; // HcclResult
    uint32_t count;
    char reason[1024];
    // `count` devices (int32_t) follow
};

Content content_of(const HcclRootInfo &info) {
    Content content;
    std::memcpy(&content, info.internal, sizeof(content));
    if (content.magic != MAGIC || strnlen(content.id, sizeof(content.id)) == sizeof(content.id) ||
        strnlen(content.name, sizeof(content.name)) == sizeof(content.name)) {
        fault(HCCL_E_PARA, "EI0003: rootInfo does not hold what HcclGetRootInfo wrote");
    }
    return content;
}

std::string socket_name(const Content &content) { return std::string("root-") + content.id; }

// The root's side: one thread that ends when all ranks have been answered.
class Gathering {
public:
    Gathering(Descriptor listener, std::chrono::seconds patience)
        : listener_(std::move(listener)), patience_(patience) {}

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
        answer_all();
    }

private:
    struct Guest {
        Descriptor socket;
        pid_t pid = 0;
        bool joined = false;
        Join join{};
    };

    bool complete() const { return size_ > 0 && joined() == size_; }
    bool late() const { return size_ > 0 && Clock::now() >= limit_; }
    size_t joined() const {
        size_t count = 0;
        for (const Guest &guest : guests_) {
            count += guest.joined ? 1 : 0;
        }
        return count;
    }

    void wait() {
        std::vector<pollfd> files{{listener_.get(), POLLIN, 0}};
        for (const Guest &guest : guests_) {
            files.push_back({guest.socket.get(), POLLIN, 0});
        }
        int pause = -1; // nobody has come: sleep until somebody does
        if (size_ > 0) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit_ - Clock::now()).count();
            pause = left > 0 ? static_cast<int>(left) + 1 : 0;
        }
        poll(files.data(), files.size(), pause);
    }

    void accept_all() {
        for (;;) {
            Guest guest;
            guest.socket = accept_from(listener_, &guest.pid);
            if (!guest.socket) {
                return;
            }
            guests_.push_back(std::move(guest));
        }
    }

    // False when the guest has gone or was sent away.
    bool listen_to(Guest *guest) {
        Join join{};
        const ssize_t length = receive_message(guest->socket, &join, sizeof(join));
        if (length < 0) {
            return true;
        }
        if (length != sizeof(join) || join.magic != MAGIC || guest->joined) {
            return false; // a joined rank has nothing more to say: its process ended
        }
        join.name[sizeof(join.name) - 1] = '\0';
        if (guest->pid <= 0) {
            guest->pid = join.pid;
        }
        const std::string reason = objection(join, guest->pid);
        if (!reason.empty()) {
            answer(*guest, HCCL_E_PARA, reason);
            return false;
        }
        if (size_ == 0) {
            size_ = join.size;
            name_ = join.name;
            limit_ = Clock::now() + patience_;
        }
        guest->join = join;
        guest->joined = true;
        return true;
    }

    std::string objection(const Join &join, pid_t pid) const {
        if (size_ == 0) {
            return {};
        }
        const int process = static_cast<int>(pid);
        if (join.size != size_) {
            return format("EI0003: rank %u (process %d) says nRanks %u, but those that came before said %u", join.rank,
                          process, join.size, size_);
        }
        if (name_ != join.name) {
            return format("EI0003: rank %u (process %d) names the communicator [%s], but those that came before [%s]",
                          join.rank, process, join.name, name_.c_str());
        }
        for (const Guest &guest : guests_) {
            if (guest.joined && guest.join.rank == join.rank) {
                return format("EI0003: rank %u is held by process %d already; process %d claims it too", join.rank,
                              static_cast<int>(guest.pid), process);
            }
        }
        return {};
    }

    void answer(const Guest &guest, HcclResult code, const std::string &reason,
                const std::vector<int32_t> &devices = {}) const {
        std::vector<char> message(sizeof(Answer) + devices.size() * sizeof(int32_t));
        Answer head{};
        head.code = static_cast<uint32_t>(code);
        head.count = static_cast<uint32_t>(devices.size());
        copy_text(head.reason, sizeof(head.reason), reason);
        std::memcpy(message.data(), &head, sizeof(head));
        if (!devices.empty()) {
            std::memcpy(message.data() + sizeof(head), devices.data(), devices.size() * sizeof(int32_t));
        }
        send_message(guest.socket, message.data(), message.size());
    }

    void answer_all() const {
        std::vector<int32_t> devices(size_, -1);
        for (const Guest &guest : guests_) {
            if (guest.joined) {
                devices[guest.join.rank] = guest.join.device;
            }
        }
        std::string absent;
        for (uint32_t rank = 0; rank < size_; rank++) {
            if (devices[rank] < 0) {
                absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
            }
        }
        const std::string reason =
            absent.empty() ? ""
                           : format("EI0015: the root waited %lld s for %u ranks; absent: rank(s) %s",
                                    static_cast<long long>(patience_.count()), size_, absent.c_str());
        for (const Guest &guest : guests_) {
            if (guest.joined && absent.empty()) {
                answer(guest, HCCL_SUCCESS, "", devices);
            } else if (guest.joined) {
                answer(guest, HCCL_E_TIMEOUT, reason);
            }
        }
    }

    Descriptor listener_;
    const std::chrono::seconds patience_;
    Clock::time_point limit_;
    std::vector<Guest> guests_;
    uint32_t size_ = 0; // as the first rank said it
    std::string name_;
};

void start_gathering(Descriptor listener, std::chrono::seconds patience) {
    auto gathering = std::make_shared<Gathering>(std::move(listener), patience);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // the thread inherits it: no signal of the client arrives there
    std::thread thread([gathering] {
        pthread_setname_np(pthread_self(), "mock-root-info");
        try {
            gathering->run();
        } catch (const std::exception &error) {
            warn_once(std::string("root info: ") + error.what());
        }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    thread.detach();
}

// A rank's side.
class Guest {
public:
    Guest(const Content &content, uint32_t size, uint32_t rank, const Settings &settings)
        : content_(content), size_(size), rank_(rank), settings_(settings),
          limit_(start_ + settings.connect_timeout) {}

    std::vector<int32_t> run() {
        const Descriptor socket = call();
        Join join{};
        join.magic = MAGIC;
        join.size = size_;
        join.rank = rank_;
        join.device = current_device();
        join.pid = getpid();
        copy_text(join.name, sizeof(join.name), settings_.name);
        if (!send_message(socket, &join, sizeof(join))) {
            root_is_gone();
        }
        return read_answer(socket);
    }

private:
    [[noreturn]] void root_is_gone() const {
        fault(HCCL_E_INTERNAL, "EI0015: rank %u of %u: the process that made the root info (pid %d) does not answer: it "
                               "has ended, or this root info was used already", rank_, size_, content_.root);
    }

    Descriptor call() const {
        for (;;) {
            Descriptor socket;
            const Connect result = connect_to(socket_name(content_), &socket, nullptr);
            if (result == Connect::Done) {
                return socket;
            }
            if (result != Connect::Busy || Clock::now() >= limit_) {
                root_is_gone();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }

    std::vector<int32_t> read_answer(const Descriptor &socket) const {
        std::vector<char> message(sizeof(Answer) + size_ * sizeof(int32_t));
        ssize_t length;
        // The root counts from the first rank that came, so its answer comes before our own time is over.
        while ((length = receive_message(socket, message.data(), message.size())) < 0) {
            pollfd file{socket.get(), POLLIN, 0};
            poll(&file, 1, 100);
            if (Clock::now() >= limit_ + std::chrono::seconds(5)) {
                fault(HCCL_E_TIMEOUT, "EI0015: rank %u of %u waited %.1f s for the root (pid %d)", rank_, size_,
                      seconds_since(start_), content_.root);
            }
        }
        Answer head;
        if (length < static_cast<ssize_t>(sizeof(head))) {
            root_is_gone();
        }
        std::memcpy(&head, message.data(), sizeof(head));
        head.reason[sizeof(head.reason) - 1] = '\0';
        if (head.code != HCCL_SUCCESS) {
            fault(static_cast<HcclResult>(head.code), "%s", head.reason);
        }
        if (head.count != size_ || static_cast<size_t>(length) != message.size()) {
            fault(HCCL_E_INTERNAL, "EI9999: the root's answer has a wrong length");
        }
        std::vector<int32_t> devices(size_);
        std::memcpy(devices.data(), message.data() + sizeof(head), size_ * sizeof(int32_t));
        return devices;
    }

    const Content content_;
    const uint32_t size_;
    const uint32_t rank_;
    const Settings &settings_;
    const Clock::time_point start_ = Clock::now();
    const Clock::time_point limit_;
};

} // namespace

void make_root_info(HcclRootInfo *info) {
    const int device = require_device();
    std::array<unsigned char, 16> random{};
    if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("getrandom").c_str());
    }
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    Content content{};
    content.magic = MAGIC;
    content.root = getpid();
    copy_text(content.id, sizeof(content.id), digest(std::string(random.begin(), random.end())));
    copy_text(content.name, sizeof(content.name),
              format("127.0.0.1%%lo_%d_%d_%lld", 60000 + device, device, static_cast<long long>(now.count())));
    const Settings settings = environment_settings();
    Descriptor listener = listen_on(socket_name(content));
    if (!listener) {
        fault(HCCL_E_SYSCALL, "EI0019: the name of the root info is in use");
    }
    start_gathering(std::move(listener), settings.connect_timeout);
    std::memset(info->internal, 0, sizeof(info->internal));
    std::memcpy(info->internal, &content, sizeof(content));
}

std::shared_ptr<Comm> create_from_root_info(const HcclRootInfo &info, uint32_t size, uint32_t rank,
                                            Settings settings) {
    set_world_rank(require_device(), rank, false);
    const Content content = content_of(info);
    if (size == 0 || size > MOST_RANKS || rank >= size) {
        fault(HCCL_E_PARA, "EI0003: rank %u and nRanks %u: nRanks must be from 1 to %u, rank below it", rank, size,
              MOST_RANKS);
    }
    const std::vector<int32_t> devices = Guest(content, size, rank, settings).run();
    CommPlan plan;
    plan.id = digest(std::string("root info ") + content.id);
    plan.name = settings.name.empty() ? content.name : settings.name;
    plan.rank = rank;
    for (uint32_t member = 0; member < size; member++) {
        plan.members.push_back({member, devices[member]});
    }
    plan.settings = std::move(settings);
    return std::make_shared<Comm>(std::move(plan));
}

} // namespace mock
