// Root info: the root's process listens, all ranks come, the root tells each who the others are.

#include <array>
#include <map>
#include <thread>
#include <tuple>

#include <sys/random.h>

#include "calls.h"
#include "creation.h"
#include "gathering.h"
#include "socket.h"

namespace mock {
namespace {

// What the 4108 bytes hold: whoever has them belongs to the job.
struct Content {
    uint32_t magic;
    int32_t root; // process id, for messages
    char id[40];
    char name[128]; // of the communicator, unless the configuration gives one
    char machine[40];
    char host[48]; // where the root listens for other machines; empty: nowhere
    uint32_t port;
    unsigned char key[32];
};
static_assert(sizeof(Content) <= HCCL_ROOT_INFO_BYTES, "root info");

template <size_t Size>
bool ends(const char (&text)[Size]) {
    return strnlen(text, Size) < Size;
}

Content content_of(const HcclRootInfo &info) {
    Content content;
    std::memcpy(&content, info.internal, sizeof(content));
    if (content.magic != ROOT_INFO_MAGIC || !ends(content.id) || !ends(content.name) || !ends(content.machine) ||
        !ends(content.host) || content.port > 65535) {
        fault(HCCL_E_PARA, "EI0003: rootInfo does not hold what HcclGetRootInfo wrote");
    }
    return content;
}

// Under this name the root is reached, by a socket of the machine or at its listener.
std::string root_name(const Content &content) { return std::string("root-") + content.id; }

std::string key_of(const Content &content) { return std::string(content.key, content.key + sizeof(content.key)); }

// A rank's side.
class Guest {
public:
    Guest(const Content &content, uint32_t size, uint32_t rank, const Settings &settings)
        : content_(content), size_(size), rank_(rank), settings_(settings), endpoint_(make_endpoint(key_of(content))),
          machine_(machine_identity()), limit_(start_ + settings.connect_timeout) {}

    // Fills in the members, and the network if it takes one to reach them.
    void run(CommPlan *plan) {
        const Descriptor socket = call();
        Join join{};
        join.magic = ROOT_INFO_MAGIC;
        join.size = size_;
        join.rank = rank_;
        join.pid = getpid();
        copy_text(join.name, sizeof(join.name), settings_.name);
        join.introduction = introduction();
        // The root counts from the first rank that came, so its answer comes before our own time is over.
        const auto late = limit_ + std::chrono::seconds(5);
        if (!send_whole(socket, &join, sizeof(join), late)) {
            root_is_gone("it closed the connection");
        }
        connect(read_answer(socket, late), plan);
    }

private:
    [[noreturn]] void root_is_gone(const std::string &why) const {
        fault(HCCL_E_INTERNAL,
              "EI0015: rank %u of %u: the process that made the root info (pid %d%s%s) does not answer: it "
              "has ended, or this root info was used already%s%s",
              rank_, size_, content_.root, by_tcp_ ? ", at " : "", by_tcp_ ? root_address().c_str() : "",
              why.empty() ? "" : "; ", why.c_str());
    }

    std::string root_address() const { return format("%s port %u", content_.host, content_.port); }

    Introduction introduction() const {
        Introduction own{};
        own.device = physical_device(current_device());
        own.forced = endpoint_.forced ? 1 : 0;
        copy_text(own.machine, sizeof(own.machine), machine_);
        const char *server = environment("SERVER_ID");
        copy_text(own.server, sizeof(own.server), server != nullptr ? server : "");
        if (endpoint_.network != nullptr) {
            copy_text(own.host, sizeof(own.host), endpoint_.host);
            own.port = endpoint_.network->listener->port();
        }
        return own;
    }

    Descriptor call() {
        by_tcp_ = content_.host[0] != '\0' && endpoint_.network != nullptr &&
                  (endpoint_.forced || machine_ != content_.machine);
        if (machine_ != content_.machine && !by_tcp_) {
            fault(HCCL_E_TCP_CONNECT,
                  "EI0015: rank %u of %u: the root (pid %d) is on another machine, but %s has no address "
                  "for TCP, or HCCL_MOCK_NET is shm there",
                  rank_, size_, content_.root, content_.host[0] == '\0' ? "it" : "this rank");
        }
        for (;;) {
            Descriptor socket;
            std::string why;
            if (by_tcp_ ? call_root(&socket, &why) : call_here(&socket)) {
                return socket;
            }
            if (Clock::now() >= limit_ ||
                why == std::strerror(ECONNREFUSED)) { // it listened before it gave the bytes away
                root_is_gone(why);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }

    bool call_here(Descriptor *socket) const {
        const Connect result = connect_to(root_name(content_), socket, nullptr);
        if (result != Connect::Done && result != Connect::Busy) {
            root_is_gone("");
        }
        return result == Connect::Done;
    }

    bool call_root(Descriptor *socket, std::string *why) const {
        try {
            return call_by_name(key_of(content_), content_.host, static_cast<uint16_t>(content_.port),
                                root_name(content_), socket, why);
        } catch (const Fault &failure) {
            root_is_gone(failure.text());
        }
    }

    std::vector<Introduction> read_answer(const Descriptor &socket, Clock::time_point late) const {
        Answer head;
        const bool came = receive_whole(socket, &head, sizeof(head), late);
        if (!came && Clock::now() >= late) {
            fault(HCCL_E_TIMEOUT, "EI0015: rank %u of %u waited %.1f s for the root (pid %d)", rank_, size_,
                  seconds_since(start_), content_.root);
        }
        if (!came) {
            root_is_gone("it closed the connection");
        }
        head.reason[sizeof(head.reason) - 1] = '\0';
        if (head.code != HCCL_SUCCESS) {
            fault(static_cast<HcclResult>(head.code), "%s", head.reason);
        }
        std::vector<Introduction> ranks(size_);
        if (head.count != size_ || !receive_whole(socket, ranks.data(), ranks.size() * sizeof(Introduction), late)) {
            fault(HCCL_E_INTERNAL, "EI9999: the root's answer has a wrong length");
        }
        return ranks;
    }

    void connect(const std::vector<Introduction> &ranks, CommPlan *plan) {
        check_devices(ranks);
        bool any = false;
        std::vector<bool> by_tcp;
        for (uint32_t rank = 0; rank < size_; rank++) {
            const Introduction &other = ranks[rank];
            plan->members.push_back({rank, other.device, rank});
            by_tcp.push_back(endpoint_.forced || other.forced != 0 || !same_machine(other));
            any = any || (by_tcp.back() && rank != rank_);
            const bool reachable = endpoint_.network != nullptr && other.port != 0 && ends(other.host);
            if (by_tcp.back() && rank != rank_ && !reachable) {
                fault(HCCL_E_TCP_CONNECT,
                      "EI0015: rank %u of %u: rank %u needs TCP to be reached (another machine, or "
                      "HCCL_MOCK_NET is tcp), but %s has no address for it",
                      rank_, size_, rank, endpoint_.network == nullptr ? "this rank" : "that rank");
            }
        }
        if (!any) {
            return;
        }
        Network &network = *endpoint_.network;
        network.by_tcp = std::move(by_tcp);
        for (const Introduction &other : ranks) {
            network.hosts.push_back(ends(other.host) ? other.host : "");
            network.ports.push_back(other.port);
        }
        plan->network = endpoint_.network;
    }

    // Every rank has a device of its own. All of them notice.
    static void check_devices(const std::vector<Introduction> &ranks) {
        std::map<std::tuple<std::string, std::string, int32_t>, size_t> seen;
        for (size_t rank = 0; rank < ranks.size(); rank++) {
            const Introduction &one = ranks[rank];
            const std::string machine(one.machine, strnlen(one.machine, sizeof(one.machine)));
            const std::string server(one.server, strnlen(one.server, sizeof(one.server)));
            const auto found = seen.emplace(std::make_tuple(machine, server, one.device), rank);
            if (!found.second) {
                fault(HCCL_E_PARA, "EI0015: ranks %zu and %zu have the same physical device, %d, of one server",
                      found.first->second, rank, one.device);
            }
        }
    }

    bool same_machine(const Introduction &other) const { return ends(other.machine) && machine_ == other.machine; }

    const Content content_;
    const uint32_t size_;
    const uint32_t rank_;
    const Settings &settings_;
    const Endpoint endpoint_;
    const std::string machine_;
    bool by_tcp_ = false;
    const Clock::time_point start_ = Clock::now();
    const Clock::time_point limit_;
};

void fill_random(void *data, size_t bytes) {
    if (getrandom(data, bytes, 0) != static_cast<ssize_t>(bytes)) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("getrandom").c_str());
    }
}

} // namespace

void make_root_info(HcclRootInfo *info) {
    constexpr int FIRST_PORT = 60000; // the vendor's name holds the first of its ports
    const int device = physical_device(require_device());
    std::array<unsigned char, 16> random{};
    fill_random(random.data(), random.size());
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    Content content{};
    fill_random(content.key, sizeof(content.key));
    content.magic = ROOT_INFO_MAGIC;
    content.root = getpid();
    copy_text(content.id, sizeof(content.id), digest(std::string(random.begin(), random.end())));
    copy_text(content.machine, sizeof(content.machine), machine_identity());
    const Settings settings = environment_settings();
    const Endpoint endpoint = make_endpoint(key_of(content));
    const bool reachable = endpoint.network != nullptr;
    if (reachable) {
        copy_text(content.host, sizeof(content.host), endpoint.host);
        content.port = endpoint.network->listener->port();
    }
    copy_text(content.name, sizeof(content.name),
              format("%s%%%s_%d_%d_%lld", reachable ? content.host : "127.0.0.1",
                     reachable ? endpoint.interface.c_str() : "lo", FIRST_PORT + device, device,
                     static_cast<long long>(now.count())));
    Descriptor listener = listen_on(root_name(content));
    if (!listener) {
        fault(HCCL_E_SYSCALL, "EI0019: the name of the root info is in use");
    }
    start_gathering(std::move(listener), root_name(content), endpoint.network, settings.connect_timeout);
    std::memset(info->internal, 0, sizeof(info->internal));
    std::memcpy(info->internal, &content, sizeof(content));
}

std::shared_ptr<Comm> create_from_root_info(const HcclRootInfo &info, uint32_t size, uint32_t rank, Settings settings) {
    const int device = require_device();
    set_world_rank(device, rank, false);
    check_rejoin();
    const Content content = content_of(info);
    if (size > MOST_RANKS) {
        fault(HCCL_E_PARA, "EI0003: nRanks is %u: %u are the most here", size, MOST_RANKS);
    }
    CommPlan plan;
    plan.id = digest(std::string("root info ") + content.id);
    plan.name = settings.name.empty() ? content.name : settings.name;
    plan.rank = rank;
    plan.device = device;
    Guest(content, size, rank, settings).run(&plan);
    plan.settings = std::move(settings);
    return std::make_shared<Comm>(std::move(plan));
}

} // namespace mock
