// Ranks on several servers: who is reached how, that strangers are refused, and what the loss of a connection says.

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "harness.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;
constexpr int REMOTE = ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;

HcclResult all_reduce(const World &world, const Vector<float> &data) {
    return HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream);
}

HcclResult transfer(const Rank &me, const World &world, const Vector<float> &data, uint64_t count) {
    return me.rank == 0 ? HcclSend(data.at(), count, FP32, 1, world.comm, world.stream)
                        : HcclRecv(data.at(), count, FP32, 0, world.comm, world.stream);
}

int base_port() { return std::atoi(std::getenv("HCCL_IF_BASE_PORT")); }

// On one machine every byte is copied once, straight from the sender's memory to the receiver's.
void one_copy(const Rank &me) {
    const World world(me);
    const uint64_t count = 4 << 20;
    const Vector<float> data(count);
    OK(transfer(me, world, data, 8));
    world.synchronize();
    const uint64_t copied = adasum_mock_counter("copied_bytes");
    const uint64_t transferred = adasum_mock_counter("transferred_bytes");
    const uint64_t calls = adasum_mock_counter("collective_calls");
    OK(transfer(me, world, data, count));
    world.synchronize();
    const uint64_t expected = me.rank == 0 ? 0 : data.bytes(); // the receiver copies
    CHECK(adasum_mock_counter("copied_bytes") - copied == expected);
    CHECK(adasum_mock_counter("transferred_bytes") - transferred == expected);
    CHECK(adasum_mock_counter("collective_calls") - calls == 1);
    CHECK(adasum_mock_counter("network_bytes") == 0);
    CHECK(adasum_mock_counter("no such counter") == 0);
}

// Over TCP data goes from the owner's memory into the socket and from the socket to its place.
void no_copy_beside_the_socket(const Rank &me) {
    const World world(me);
    const uint64_t count = 4 << 20;
    const Vector<float> data(count, [&](size_t i) { return me.rank == 0 ? static_cast<float>(i) : 0.0F; });
    OK(transfer(me, world, data, count));
    world.synchronize();
    data.expect([](size_t i) { return static_cast<float>(i); }, "transfer");
    CHECK(adasum_mock_counter("copied_bytes") == 0);
    CHECK(adasum_mock_counter("network_bytes") == (me.rank == 0 ? 0 : data.bytes()));
}

std::string table_with(const std::string &first, const std::string &second) {
    return "{\"status\":\"completed\",\"version\":\"1.0\",\"server_count\":\"2\",\"server_list\":[{" + first +
           ",\"device\":[{\"device_id\":\"0\",\"device_ip\":\"10.0.0.1\",\"rank_id\":\"0\"}]},{" + second +
           ",\"device\":[{\"device_id\":\"1\",\"device_ip\":\"10.0.0.2\",\"rank_id\":\"1\"}]}]}";
}

// A world of two servers over this table; returns the bytes that came over the network.
uint64_t network_bytes(const Rank &me, const std::string &table) {
    const std::string path = folder() + "/own" + std::to_string(me.rank) + ".json";
    write_file(path, table);
    OK(aclrtSetDevice(static_cast<int>(me.rank)));
    aclrtStream stream = nullptr;
    OK(aclrtCreateStream(&stream));
    HcclComm comm = nullptr;
    OK(HcclCommInitClusterInfo(path.c_str(), me.rank, &comm));
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, comm, stream));
    OK(aclrtSynchronizeStream(stream));
    data.expect([](size_t) { return 2.0F; }, "all-reduce");
    OK(HcclCommDestroy(comm));
    OK(aclrtDestroyStream(stream));
    return adasum_mock_counter("network_bytes");
}

// No address of the table belongs to this machine: a simulated cluster, over shared memory.
void simulated_cluster(const Rank &me) {
    CHECK(network_bytes(me, table_with("\"server_id\":\"203.0.113.1\"", "\"server_id\":\"203.0.113.2\"")) == 0);
    CHECK(network_bytes(me, table_with("\"server_id\":\"one\"", "\"server_id\":\"two\"")) == 0);
}

// Both servers have an address of this machine: shared memory.
void servers_on_one_machine(const Rank &me) {
    CHECK(network_bytes(me, table_with("\"server_id\":\"one\",\"host_ip\":\"127.0.0.1\"",
                                       "\"server_id\":\"two\",\"host_ip\":\"127.0.0.1\"")) == 0);
}

// The same with tcp forced: at the addresses of the table, since they are there.
void forced_at_real_addresses(const Rank &me) {
    CHECK(network_bytes(me, table_with("\"server_id\":\"one\",\"host_ip\":\"127.0.0.1\"",
                                       "\"server_id\":\"two\",\"host_ip\":\"127.0.0.1\"")) > 0);
}

int call_port(int port) {
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    CHECK(connect(file, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0);
    return file;
}

// Sends bytes as a stranger and reads until the other side closes; returns how many bytes came.
size_t stray(const std::string &words, bool end) {
    const int file = call_port(base_port());
    const ssize_t sent = send(file, words.data(), words.size(), MSG_NOSIGNAL);
    CHECK(sent == static_cast<ssize_t>(words.size()));
    if (end) {
        shutdown(file, SHUT_WR);
    }
    size_t total = 0;
    char buffer[4096];
    for (ssize_t count; (count = recv(file, buffer, sizeof(buffer), 0)) > 0;) {
        total += static_cast<size_t>(count);
    }
    close(file);
    return total;
}

// Whoever does not prove that it belongs to the job gets a random number and nothing else.
void strangers(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(all_reduce(world, data)); // now rank 0 listens
    if (me.rank == 1) {
        constexpr size_t CHALLENGE = 24;
        CHECK(stray("GET / HTTP/1.1\r\n\r\n", false) == CHALLENGE);
        CHECK(stray(std::string(1 << 16, '\xff'), false) <= CHALLENGE);
        std::string wrong("\x43\x48\x4b\x4d", 4); // the right start, but no proof
        CHECK(stray(wrong + std::string(140, '\0'), false) == CHALLENGE);
        CHECK(stray(wrong + std::string(7, '\0'), true) == CHALLENGE);
        CHECK(stray("", true) == CHALLENGE);
    }
    world.synchronize();
    const int silent = me.rank == 1 ? call_port(base_port()) : -1;
    for (int i = 0; i < 3; i++) {
        OK(all_reduce(world, data));
        world.synchronize();
    }
    if (me.rank == 0) {
        CHECK(adasum_mock_counter("refused_calls") >= 4);
    } else {
        close(silent);
    }
}

// Connections that say nothing keep nobody out, however many they are, and are put out after a while.
void silent_crowd(const Rank &me) {
    constexpr size_t CROWD = 400;
    const World world(me);
    const Vector<float> data(8);
    std::vector<int> silent;
    if (me.rank == 0) {
        write_file(folder() + "/listens", "");
    } else {
        read_file(folder() + "/listens");
        while (silent.size() < CROWD) {
            silent.push_back(call_port(base_port()));
        }
    }
    const double begin = now();
    OK(all_reduce(world, data));
    world.synchronize();
    CHECK(now() - begin < 10);
    if (me.rank == 0) {
        for (int i = 0; i < 1000 && adasum_mock_counter("refused_calls") < CROWD; i++) {
            pause_ms(10);
        }
        CHECK(adasum_mock_counter("refused_calls") == CROWD);
        write_file(folder() + "/alone", "");
    } else {
        read_file(folder() + "/alone");
    }
    for (const int file : silent) {
        close(file);
    }
}

bool has_ipv6() {
    std::ifstream file("/proc/net/if_inet6");
    const std::string all(std::istreambuf_iterator<char>(file), {});
    return all.find(std::string(31, '0') + "1 ") == 0 ||
           all.find("\n" + std::string(31, '0') + "1 ") != std::string::npos;
}

// The root listens at HCCL_IF_IP, or at an interface and in a family that are asked for; the name of the communicator tells it.
void root_info_address(const Rank &me) {
    const std::string wanted = std::getenv("HARNESS_NEEDLE");
    if (wanted[0] == ':' && !has_ipv6()) {
        std::printf("!!! SKIPPED: no IPv6 here\n");
        return;
    }
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    char name[128] = {};
    OK(HcclCommInitRootInfo(me.size, &info, me.rank, &comm));
    OK(HcclGetCommName(comm, name));
    CHECK(std::string(name).rfind(wanted + "%lo_60000_0_", 0) == 0);
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    OK(HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, comm, world.stream));
    world.synchronize();
    data.expect([&](size_t) { return static_cast<float>(me.size); }, "all-reduce");
    CHECK(adasum_mock_counter("network_bytes") > 0);
    OK(HcclCommDestroy(comm));
}

// Ranks of one machine that disagree about the network learn of it when the world is made.
void root_info_disagreement(const Rank &me) {
    setenv("HCCL_MOCK_NET", me.rank == 1 ? "tcp" : "shm", 1);
    const World world(me, false);
    const HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    FAILS(HCCL_E_TCP_CONNECT, me.rank == 1 ? "but that rank has no address" : "rank 1 needs TCP to be reached",
          HcclCommInitRootInfo(me.size, &info, me.rank, &comm));
}

// Another world's key opens nothing: whoever has not the bytes of this root info is refused.
void root_info_forged(const Rank &me) {
    const World world(me, false);
    HcclRootInfo info = shared_root_info(me);
    HcclComm comm = nullptr;
    if (me.rank == 1) {
        HcclRootInfo other = info;
        char *key = other.internal + 4 + 4 + 40 + 128 + 40 + 48 + 4; // the last field
        CHECK(std::string(key, 32) != std::string(32, '\0') && key[32] == 0);
        key[5] ^= 1;
        FAILS(HCCL_E_INTERNAL, "does not answer as a rank of this job does", HcclCommInitRootInfo(2, &other, 1, &comm));
        write_file(folder() + "/forged", "");
    } else {
        read_file(folder() + "/forged");
        CHECK(adasum_mock_counter("refused_calls") > 0);
    }
    OK(HcclCommInitRootInfo(2, &info, me.rank, &comm));
    OK(HcclBarrier(comm, world.stream));
    world.synchronize();
    OK(HcclCommDestroy(comm));
}

void bad_root_info(const Rank &) {
    OK(aclrtSetDevice(0));
    HcclRootInfo info;
    FAILS(HCCL_E_PARA, std::getenv("HARNESS_NEEDLE"), HcclGetRootInfo(&info));
}

// Ranks 0 and 1, which do not have the same key, refuse each other, and both say who does not answer.
void refuse_each_other(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    FAILS(HCCL_E_TIMEOUT, me.rank == 0 ? "rank 1 (127.0.0." : "does not answer as a rank of this job does",
          all_reduce(world, data));
    if (me.rank == 1) {
        write_file(folder() + "/seen", "");
    }
    read_file(folder() + "/seen"); // before that, rank 0 listens
}

// A peer with another job id has another key.
void other_job(const Rank &me) {
    if (me.rank == 1) {
        setenv("HCCL_MOCK_JOB", "another", 1);
    }
    refuse_each_other(me);
}

// So has a peer with another secret, though its job and its rank table are the same.
void other_secret(const Rank &me) {
    setenv("ADASUM_JOB_SECRET", me.rank == 0 ? "the secret of this job" : "that of another one", 1);
    refuse_each_other(me);
}

// One rank has it from its environment, the other one from a file.
void same_secret(const Rank &me) {
    if (me.rank == 0) {
        setenv("ADASUM_JOB_SECRET", "the secret of this job", 1);
    } else {
        const std::string path = folder() + "/secret";
        write_file(path, "the secret of this job\n");
        CHECK(chmod(path.c_str(), 0600) == 0);
        setenv("ADASUM_JOB_SECRET_FILE", path.c_str(), 1);
    }
    const World world(me);
    const Vector<float> data(8);
    OK(all_reduce(world, data));
    world.synchronize();
}

void bad_secret(const Rank &me) {
    OK(aclrtSetDevice(0));
    const auto refused = [&](const char *why) {
        HcclComm comm = nullptr;
        FAILS(HCCL_E_PARA, why, HcclCommInitClusterInfo(table_path().c_str(), me.rank, &comm));
    };
    const std::string path = folder() + "/secret";
    setenv("ADASUM_JOB_SECRET_FILE", path.c_str(), 1);
    refused("No such file");
    write_file(path, "the secret of this job\n");
    CHECK(chmod(path.c_str(), 0640) == 0);
    refused("its mode is 0640, so that others may use it");
    setenv("ADASUM_JOB_SECRET", "the secret of this job", 1);
    refused("are both set");
    unsetenv("ADASUM_JOB_SECRET_FILE");
    setenv("ADASUM_JOB_SECRET", "short", 1);
    refused("the secret has 5 bytes, at least 16 are needed");
}

void killed(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(all_reduce(world, data));
    world.synchronize();
    if (me.rank == 2) {
        raise(SIGKILL);
    }
    const double begin = now();
    if (all_reduce(world, data) == HCCL_SUCCESS) {
        FAILS(REMOTE, text("the connection to rank 2 (127.0.0.2:%d) was lost", base_port()),
              aclrtSynchronizeStream(world.stream));
    }
    CHECK(now() - begin < 10);
    RETURNS(HCCL_E_REMOTE, all_reduce(world, data));
}

void port_in_use(const Rank &me) {
    OK(aclrtSetDevice(0));
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(base_port()));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    const int yes = 1; // connections of earlier cases may linger on this port
    CHECK(setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
    CHECK(bind(file, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0 && listen(file, 1) == 0);
    HcclComm comm = nullptr;
    FAILS(HCCL_E_TCP_CONNECT, "EI0019", HcclCommInitClusterInfo(table_path().c_str(), me.rank, &comm));
    close(file);
    OK(HcclCommInitClusterInfo(table_path().c_str(), me.rank, &comm));
    OK(HcclCommDestroy(comm));
}

void bad_value(const Rank &me) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, std::getenv("HARNESS_NEEDLE"), HcclCommInitClusterInfo(table_path().c_str(), me.rank, &comm));
}

size_t entries(const char *path) {
    size_t count = 0;
    DIR *folder = opendir(path);
    CHECK(folder != nullptr);
    while (readdir(folder) != nullptr) {
        count++;
    }
    closedir(folder);
    return count;
}

// No more descriptors or threads than before, but for those of the last world: they go when the next is made.
void expect_no_more(const char *path, size_t before) {
    constexpr size_t LAST_WORLD = 8; // a leak would show up in each of the rounds
    size_t after = entries(path);
    for (int i = 0; i < 500 && after > before + LAST_WORLD; i++) {
        pause_ms(10);
        after = entries(path);
    }
    if (after > before + LAST_WORLD) {
        failed(__FILE__, __LINE__, text("%s has %zu entries, %zu before", path, after, before));
    }
}

// The same world over and over: what it takes of ports, descriptors and threads is given back.
void again(const Rank &me) {
    size_t files = 0;
    size_t threads = 0;
    for (int round = 0; round < 20; round++) {
        if (round == 3 && me.processes) {
            pause_ms(100); // the ends of the first worlds
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
        const World world(me);
        const Vector<float> data(8, [](size_t) { return 1.0F; });
        OK(all_reduce(world, data));
        world.synchronize();
        data.expect([&](size_t) { return static_cast<float>(me.size); }, "all-reduce");
    }
    if (me.processes) {
        expect_no_more("/proc/self/fd", files);
        expect_no_more("/proc/self/task", threads);
    }
}

// The same with a new root info each time: its threads, sockets and listeners end with it.
void again_by_root_info(const Rank &me) {
    const World world(me, false);
    size_t files = 0;
    size_t threads = 0;
    for (int round = 0; round < 20; round++) {
        if (round == 3) {
            pause_ms(100);
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
        const HcclRootInfo info = shared_root_info(me, round);
        HcclComm comm = nullptr;
        OK(HcclCommInitRootInfo(me.size, &info, me.rank, &comm));
        OK(HcclBarrier(comm, world.stream));
        world.synchronize();
        OK(HcclCommDestroy(comm));
    }
    expect_no_more("/proc/self/fd", files);
    expect_no_more("/proc/self/task", threads);
}

} // namespace

int main(int argc, char **argv) {
    const std::pair<std::string, std::string> tcp{"HCCL_MOCK_NET", "tcp"};
    const std::pair<std::string, std::string> shm{"HCCL_MOCK_NET", "shm"};
    const std::pair<std::string, std::string> two{"HARNESS_PER_SERVER", "2"};
    setenv("HARNESS_PER_SERVER", "2", 0);
    return run(
        argc, argv,
        {
            {"one-copy-p", Ranks::Processes, 2, one_copy, {shm}},
            {"no-copy-beside-the-socket", Ranks::Processes, 2, no_copy_beside_the_socket, {tcp}},
            {"simulated-cluster", Ranks::Processes, 2, simulated_cluster, {}},
            {"servers-on-one-machine", Ranks::Processes, 2, servers_on_one_machine, {}},
            {"forced-at-real-addresses", Ranks::Processes, 2, forced_at_real_addresses, {tcp}},
            {"strangers", Ranks::Processes, 2, strangers, {tcp}},
            {"other-job", Ranks::Processes, 2, other_job, {tcp, {"HCCL_CONNECT_TIMEOUT", "1"}}},
            {"other-secret", Ranks::Processes, 2, other_secret, {tcp, {"HCCL_CONNECT_TIMEOUT", "1"}}},
            {"same-secret", Ranks::Processes, 2, same_secret, {tcp}},
            {"bad-secret", Ranks::Processes, 1, bad_secret, {tcp}},
            {"silent-crowd", Ranks::Processes, 2, silent_crowd, {tcp}},
            {"root-info-address",
             Ranks::Processes,
             3,
             root_info_address,
             {tcp, {"HCCL_IF_IP", "127.0.0.9"}, {"HARNESS_NEEDLE", "127.0.0.9"}}},
            {"root-info-interface",
             Ranks::Processes,
             2,
             root_info_address,
             {tcp, {"HCCL_SOCKET_IFNAME", "none,l"}, {"HARNESS_NEEDLE", "127.0.0.1"}}},
            {"root-info-ipv6",
             Ranks::Processes,
             2,
             root_info_address,
             {tcp, {"HCCL_SOCKET_IFNAME", "=lo"}, {"HCCL_SOCKET_FAMILY", "AF_INET6"}, {"HARNESS_NEEDLE", "::1"}}},
            {"root-info-disagreement", Ranks::Processes, 2, root_info_disagreement, {}},
            {"root-info-forged", Ranks::Processes, 2, root_info_forged, {tcp, {"HCCL_CONNECT_TIMEOUT", "2"}}},
            {"root-info-bad-address",
             Ranks::Processes,
             1,
             bad_root_info,
             {{"HCCL_IF_IP", "203.0.113.7"}, {"HARNESS_NEEDLE", "HCCL_IF_IP [203.0.113.7]"}}},
            {"root-info-bad-interface",
             Ranks::Processes,
             1,
             bad_root_info,
             {{"HCCL_SOCKET_IFNAME", "=none"}, {"HARNESS_NEEDLE", "HCCL_SOCKET_IFNAME [=none]"}}},
            {"root-info-bad-family",
             Ranks::Processes,
             1,
             bad_root_info,
             {tcp,
              {"HCCL_SOCKET_IFNAME", "=lo"},
              {"HCCL_SOCKET_FAMILY", "IPX"},
              {"HARNESS_NEEDLE", "HCCL_SOCKET_FAMILY [IPX]"}}},
            {"killed-over-tcp", Ranks::Processes, 4, killed, {tcp, two}, 2},
            {"port-in-use", Ranks::Processes, 1, port_in_use, {tcp}},
            {"bad-net",
             Ranks::Processes,
             1,
             bad_value,
             {{"HCCL_MOCK_NET", "udp"}, {"HARNESS_NEEDLE", "[udp] is not auto, shm or tcp"}}},
            {"again-shm", Ranks::Processes, 4, again, {shm}},
            {"again-p", Ranks::Processes, 4, again, {tcp}},
            {"again-root-info-auto", Ranks::Processes, 4, again_by_root_info, {}},
            {"again-root-info-tcp", Ranks::Processes, 4, again_by_root_info, {tcp}},
            {"again-t", Ranks::Threads, 3, again, {tcp}},
        });
}
