// A small harness for tests that use ACL and HCCL only: a case is a function that every rank runs, and ranks are threads
// of one process or processes. The driver itself never calls ACL, so it may fork.

#ifndef ADASUM_TESTS_HARNESS_H
#define ADASUM_TESTS_HARNESS_H

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

// Of the mock: what it counts.
extern "C" uint64_t adasum_mock_counter(const char *name);

namespace harness {

struct Rank {
    uint32_t rank;
    uint32_t size;
    bool processes; // ranks are processes
};

enum class Ranks { Threads, Processes };

struct Case {
    const char *name;
    Ranks kind;
    uint32_t ranks;
    std::function<void(const Rank &)> body;
    std::vector<std::pair<std::string, std::string>> environment = {};
    int victim = -1; // a rank that dies on purpose
};

inline std::string text(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
inline std::string text(const char *pattern, ...) {
    char buffer[4096];
    va_list list;
    va_start(list, pattern);
    std::vsnprintf(buffer, sizeof(buffer), pattern, list);
    va_end(list);
    return buffer;
}

[[noreturn]] inline void failed(const char *file, int line, const std::string &what) {
    throw std::runtime_error(text("%s:%d: %s", file, line, what.c_str()));
}

inline std::string recent() {
    const char *message = aclGetRecentErrMsg();
    return message == nullptr ? "" : message;
}

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            harness::failed(__FILE__, __LINE__, "not true: " #condition);                                              \
    } while (0)

// The call returns this code; on another one its message is shown.
#define RETURNS(code, call)                                                                                            \
    do {                                                                                                               \
        const int returned_ = static_cast<int>(call);                                                                  \
        if (returned_ != static_cast<int>(code))                                                                       \
            harness::failed(__FILE__, __LINE__,                                                                        \
                            harness::text("%s is %d, not %d: %s", #call, returned_, static_cast<int>(code),            \
                                          harness::recent().c_str()));                                                 \
    } while (0)

#define OK(call) RETURNS(0, call)

// The call fails with this code and a recent message that holds this text.
#define FAILS(code, needle, call)                                                                                      \
    do {                                                                                                               \
        RETURNS(code, call);                                                                                           \
        harness::expect_text(__FILE__, __LINE__, harness::recent(), needle);                                           \
    } while (0)

inline void expect_text(const char *file, int line, const std::string &message, const std::string &needle) {
    if (message.find(needle) == std::string::npos) {
        failed(file, line, text("the message [%s] does not hold [%s]", message.c_str(), needle.c_str()));
    }
}

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// On another thread; what fails there fails here.
inline void on_thread(const std::function<void()> &body) { std::async(std::launch::async, body).get(); }

inline std::string folder() { return std::getenv("HARNESS_DIR"); }

inline std::string table_path() { return folder() + "/table.json"; }

inline void write_file(const std::string &path, const std::string &content) {
    const std::string part = path + ".part" + std::to_string(getpid());
    std::ofstream(part, std::ios::binary) << content;
    if (std::rename(part.c_str(), path.c_str()) != 0) {
        throw std::runtime_error("rename " + path);
    }
}

// Waits for a file that another rank writes.
inline std::string read_file(const std::string &path) {
    for (int i = 0; i < 3000; i++) {
        std::ifstream file(path, std::ios::binary);
        if (file) {
            return std::string(std::istreambuf_iterator<char>(file), {});
        }
        pause_ms(10);
    }
    throw std::runtime_error("no file " + path);
}

// Made by rank 0; it travels as bytes, in a file for each round.
inline HcclRootInfo shared_root_info(const Rank &me, int round = 0) {
    HcclRootInfo info;
    const std::string path = text("%s/root%d", folder().c_str(), round);
    if (me.rank == 0) {
        OK(HcclGetRootInfo(&info));
        write_file(path, std::string(info.internal, sizeof(info.internal)));
    } else {
        std::memcpy(info.internal, read_file(path).data(), sizeof(info.internal));
    }
    return info;
}

// Of version 2.0, which is all that the Ascend 950 reads.
inline std::string make_rank_list(uint32_t ranks, uint32_t per_server) {
    std::string json = text("{\"version\":\"2.0\",\"rank_count\":%u,\"rank_list\":[", ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        json += text("%s{\"rank_id\":%u,\"local_id\":%u,\"device_id\":%u,\"level_list\":[{\"net_layer\":0,"
                     "\"net_instance_id\":\"node_%u\",\"rank_addr_list\":[]}]}",
                     rank == 0 ? "" : ",", rank, rank % per_server, rank % per_server, rank / per_server);
    }
    return json + "]}";
}

// One server if the ranks are threads (each needs a device of its own), else servers of eight or HARNESS_PER_SERVER.
inline std::string make_table(uint32_t ranks, bool processes, bool is_950 = false) {
    const char *wanted = std::getenv("HARNESS_PER_SERVER");
    const uint32_t per_server = !processes ? ranks : wanted != nullptr ? static_cast<uint32_t>(std::atoi(wanted)) : 8;
    if (is_950) {
        return make_rank_list(ranks, per_server);
    }
    const uint32_t servers = (ranks + per_server - 1) / per_server;
    std::string json = text("{\"version\":\"1.0\",\"server_count\":\"%u\",\"server_list\":[", servers);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const uint32_t device = rank % per_server;
        if (device == 0) {
            json += text("%s{\"server_id\":\"node_%u\",\"device\":[", rank == 0 ? "" : "]},", rank / per_server);
        }
        json += text("%s{\"device_id\":\"%u\",\"device_ip\":\"192.168.%u.%u\",\"rank_id\":\"%u\"}",
                     device == 0 ? "" : ",", device, 1 + rank / 200, 1 + rank % 200, rank);
    }
    return json + "]}],\"status\":\"completed\"}";
}

inline uint32_t per_server() {
    const char *wanted = std::getenv("HARNESS_PER_SERVER");
    return wanted != nullptr ? static_cast<uint32_t>(std::atoi(wanted)) : 8;
}

inline uint32_t server_of(uint32_t rank, bool processes) { return processes ? rank / per_server() : 0; }

inline int device_of(const Rank &rank) {
    return static_cast<int>(rank.processes ? rank.rank % per_server() : rank.rank);
}

// A device, a stream and the world communicator of one rank.
class World {
public:
    explicit World(const Rank &rank, bool with_comm = true) : rank_(rank) {
        const int code = aclInit(nullptr);
        CHECK(code == 0 || code == ACL_ERROR_REPEAT_INITIALIZE);
        OK(aclrtSetDevice(device_of(rank)));
        OK(aclrtCreateStream(&stream));
        if (with_comm) {
            OK(HcclCommInitClusterInfo(table_path().c_str(), rank.rank, &comm));
        }
    }
    ~World() {
        if (comm != nullptr) {
            HcclCommDestroy(comm);
        }
        aclrtDestroyStream(stream);
        aclrtResetDevice(device_of(rank_));
    }
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    void synchronize() const { OK(aclrtSynchronizeStream(stream)); }

    aclrtStream stream = nullptr;
    HcclComm comm = nullptr;

private:
    Rank rank_;
};

// Device memory with elements that the host can set and read.
template <class Type>
class Vector {
public:
    explicit Vector(size_t count) : count_(count) {
        OK(aclrtMalloc(&address_, count * sizeof(Type), ACL_MEM_MALLOC_HUGE_FIRST));
    }
    Vector(size_t count, const std::function<Type(size_t)> &value) : Vector(count) { set(value); }
    ~Vector() { aclrtFree(address_); }
    Vector(const Vector &) = delete;
    Vector &operator=(const Vector &) = delete;

    void set(const std::function<Type(size_t)> &value) {
        std::vector<Type> host(count_);
        for (size_t i = 0; i < count_; i++) {
            host[i] = value(i);
        }
        OK(aclrtMemcpy(address_, bytes(), host.data(), bytes(), ACL_MEMCPY_HOST_TO_DEVICE));
    }
    std::vector<Type> get() const {
        std::vector<Type> host(count_);
        OK(aclrtMemcpy(host.data(), bytes(), address_, bytes(), ACL_MEMCPY_DEVICE_TO_HOST));
        return host;
    }
    void expect(const std::function<Type(size_t)> &value, const char *what) const {
        const std::vector<Type> host = get();
        for (size_t i = 0; i < count_; i++) {
            if (!(host[i] == value(i))) {
                throw std::runtime_error(text("%s: element %zu is %g, not %g", what, i, static_cast<double>(host[i]),
                                              static_cast<double>(value(i))));
            }
        }
    }
    Type *at(size_t index = 0) const { return static_cast<Type *>(address_) + index; }
    size_t bytes() const { return count_ * sizeof(Type); }

private:
    size_t count_;
    void *address_ = nullptr;
};

inline int run_child(const Case &test, int rank) {
    std::vector<uint32_t> ranks;
    if (rank >= 0) {
        ranks.push_back(static_cast<uint32_t>(rank));
    } else {
        for (uint32_t i = 0; i < test.ranks; i++) {
            ranks.push_back(i);
        }
    }
    std::mutex mutex;
    int result = 0;
    const auto body = [&](uint32_t number) {
        try {
            test.body({number, test.ranks, test.kind == Ranks::Processes});
        } catch (const std::exception &error) {
            std::lock_guard<std::mutex> lock(mutex);
            std::fprintf(stderr, "  rank %u: %s\n", number, error.what());
            result = 1;
        }
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < ranks.size(); i++) {
        threads.emplace_back(body, ranks[i]);
    }
    body(ranks[0]);
    for (std::thread &thread : threads) {
        thread.join();
    }
    return result;
}

inline pid_t start(const char *program, const Case &test, int rank) {
    const pid_t pid = fork();
    if (pid == 0) {
        if (rank >= 0) {
            setenv("SERVER_ID", std::to_string(server_of(static_cast<uint32_t>(rank), true)).c_str(), 1);
        }
        for (const auto &entry : test.environment) {
            setenv(entry.first.c_str(), entry.second.c_str(), 1);
        }
        const std::string number = std::to_string(rank);
        execl(program, program, "--child", test.name, number.c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    return pid;
}

// Whether the first ports from `base` on can be listened at.
inline bool ports_are_free(int base) {
    bool free = true;
    for (int port = base; free && port < base + 8; port++) {
        const int file = socket(AF_INET, SOCK_STREAM, 0);
        const int yes = 1; // connections of earlier cases may linger
        setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(port));
        free = bind(file, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0;
        close(file);
    }
    return free;
}

inline bool run_case(const char *program, const Case &test) {
    char pattern[] = "/tmp/adasum-harness-XXXXXX";
    if (mkdtemp(pattern) == nullptr) {
        return false;
    }
    setenv("HARNESS_DIR", pattern, 1);
    setenv("HCCL_MOCK_JOB", pattern, 1);
    // Ports below those that tests in Rust take (20000 and above).
    static int cases = 0;
    int base = 0;
    // Another program may be at the same ports.
    do {
        base = 10000 + (getpid() * 7 + cases++) % 156 * 64;
    } while (!ports_are_free(base));
    setenv("HCCL_IF_BASE_PORT", std::to_string(base).c_str(), 1);
    const auto is_950 = [](const auto &entry) {
        return entry.first == "ASCEND_MOCK_SOC" && entry.second.rfind("Ascend950", 0) == 0;
    };
    const bool list = std::any_of(test.environment.begin(), test.environment.end(), is_950);
    write_file(table_path(), make_table(test.ranks, test.kind == Ranks::Processes, list));
    const double begin = now();
    std::vector<pid_t> children;
    const int last = test.kind == Ranks::Processes ? static_cast<int>(test.ranks) : 1;
    for (int i = 0; i < last; i++) {
        children.push_back(start(program, test, test.kind == Ranks::Processes ? i : -1));
    }
    bool good = true;
    const char *seconds = std::getenv("HARNESS_SECONDS");
    const double limit = begin + (seconds != nullptr ? std::atof(seconds) : 120);
    for (size_t i = 0; i < children.size(); i++) {
        int status = 0;
        while (waitpid(children[i], &status, WNOHANG) == 0) {
            if (now() > limit) {
                std::fprintf(stderr, "  rank %zu does not end\n", i);
                kill(children[i], SIGABRT);
                waitpid(children[i], &status, 0);
                break;
            }
            pause_ms(2);
        }
        if (static_cast<int>(i) != test.victim && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
            std::fprintf(stderr, "  rank %zu ended with status 0x%x\n", i, status);
            good = false;
        }
    }
    const std::string remove = std::string("rm -rf ") + pattern;
    good = std::system(remove.c_str()) == 0 && good;
    std::printf("%-28s %3u %-9s %s  %.2f s\n", test.name, test.ranks,
                test.kind == Ranks::Processes ? "processes" : "threads", good ? "ok" : "FAILED", now() - begin);
    std::fflush(stdout);
    return good;
}

// Runs all cases, or those whose names hold one of the arguments.
inline int run(int argc, char **argv, const std::vector<Case> &cases) {
    if (argc == 4 && std::strcmp(argv[1], "--child") == 0) {
        for (const Case &test : cases) {
            if (std::strcmp(test.name, argv[2]) == 0) {
                return run_child(test, std::atoi(argv[3]));
            }
        }
        return 126;
    }
    setenv("ASCEND_MOCK_DEVICES", "64", 0);
    setenv("ASCEND_MOCK_QUIET", "1", 0);
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        const auto is_chosen = [&](const Case &test) { return std::strstr(test.name, argv[i]) != nullptr; };
        if (std::none_of(cases.begin(), cases.end(), is_chosen)) {
            std::fprintf(stderr, "%s is in no case's name\n", argv[i]);
            return 126;
        }
    }
    for (const Case &test : cases) {
        bool chosen = argc == 1;
        for (int i = 1; i < argc; i++) {
            chosen = chosen || std::strstr(test.name, argv[i]) != nullptr;
        }
        if (chosen && !run_case("/proc/self/exe", test)) {
            bad++;
        }
    }
    if (bad > 0) {
        std::printf("%d cases failed\n", bad);
    }
    return bad == 0 ? 0 : 1;
}

} // namespace harness

#endif
