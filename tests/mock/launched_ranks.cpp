// A program of the vendor's style for a launcher that starts one process per device: mpirun, or any that sets its variables.
// Root info goes by MPI where it is compiled with WITH_MPI, else through the file that ROOT_INFO_FILE names.
//
// Every rank checks an all-reduce, a broadcast, an all to all and a batch over a ring, and says so in one line. With the
// argument "forever" it says so after each time and goes on until it is killed.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

#ifdef WITH_MPI
#include <mpi.h>
#endif

extern "C" uint64_t adasum_mock_counter(const char *name);

namespace {

constexpr uint64_t COUNT = 100000;

void check(int code, const char *call) {
    if (code != 0) {
        const char *message = aclGetRecentErrMsg();
        throw std::runtime_error(std::string(call) + " returned " + std::to_string(code) + ": " +
                                 (message != nullptr ? message : "no message"));
    }
}
#define CHECKED(call) check(static_cast<int>(call), #call)

uint32_t variable(std::initializer_list<const char *> names) {
    for (const char *name : names) {
        const char *value = std::getenv(name);
        if (value != nullptr) {
            return static_cast<uint32_t>(std::atoi(value));
        }
    }
    throw std::runtime_error(std::string("the launcher sets no variable like ") + *names.begin());
}

struct Place {
    uint32_t rank = variable({"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
    uint32_t size = variable({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
    uint32_t local = variable({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"});
};

#ifdef WITH_MPI
void share(const Place &, HcclRootInfo *info) {
    if (MPI_Bcast(info->internal, sizeof(info->internal), MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS) {
        throw std::runtime_error("MPI_Bcast failed");
    }
}
#else
void share(const Place &place, HcclRootInfo *info) {
    const char *path = std::getenv("ROOT_INFO_FILE");
    if (path == nullptr) {
        throw std::runtime_error("ROOT_INFO_FILE is not set");
    }
    const std::string part = std::string(path) + ".part";
    if (place.rank == 0) {
        std::ofstream(part, std::ios::binary).write(info->internal, sizeof(info->internal));
        std::rename(part.c_str(), path);
        return;
    }
    for (int i = 0; i < 6000; i++) {
        std::ifstream file(path, std::ios::binary);
        if (file.read(info->internal, sizeof(info->internal))) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw std::runtime_error("no root info came");
}
#endif

class Buffer {
public:
    explicit Buffer(uint64_t count) : count_(count) {
        CHECKED(aclrtMalloc(&address_, bytes(), ACL_MEM_MALLOC_HUGE_FIRST));
    }
    ~Buffer() { aclrtFree(address_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    template <class Value>
    void set(Value value) const {
        std::vector<float> host(count_);
        for (uint64_t i = 0; i < count_; i++) {
            host[i] = static_cast<float>(value(i));
        }
        CHECKED(aclrtMemcpy(address_, bytes(), host.data(), bytes(), ACL_MEMCPY_HOST_TO_DEVICE));
    }
    template <class Value>
    void expect(const char *what, Value value) const {
        std::vector<float> host(count_);
        CHECKED(aclrtMemcpy(host.data(), bytes(), address_, bytes(), ACL_MEMCPY_DEVICE_TO_HOST));
        for (uint64_t i = 0; i < count_; i++) {
            if (host[i] != static_cast<float>(value(i))) {
                throw std::runtime_error(std::string(what) + ": element " + std::to_string(i) + " is " +
                                         std::to_string(host[i]));
            }
        }
    }
    void *at() const { return address_; }

private:
    size_t bytes() const { return count_ * sizeof(float); }
    const uint64_t count_;
    void *address_ = nullptr;
};

void exchange(const Place &me, HcclComm comm, aclrtStream stream) {
    const Buffer data(COUNT), broadcast(COUNT), out(COUNT * me.size), in(COUNT * me.size), ring(COUNT);
    data.set([&](uint64_t i) { return me.rank + i % 100; });
    broadcast.set([&](uint64_t i) { return me.rank * 1000 + i % 100; });
    out.set([&](uint64_t i) { return me.rank * 10 + i / COUNT; });
    const uint32_t next = (me.rank + 1) % me.size;
    const uint32_t before = (me.rank + me.size - 1) % me.size;
    HcclSendRecvItem items[] = {{HCCL_SEND, out.at(), COUNT, HCCL_DATA_TYPE_FP32, next},
                                {HCCL_RECV, ring.at(), COUNT, HCCL_DATA_TYPE_FP32, before}};
    CHECKED(HcclAllReduce(data.at(), data.at(), COUNT, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
    CHECKED(HcclBroadcast(broadcast.at(), COUNT, HCCL_DATA_TYPE_FP32, me.size - 1, comm, stream));
    CHECKED(HcclAlltoAll(out.at(), COUNT, HCCL_DATA_TYPE_FP32, in.at(), COUNT, HCCL_DATA_TYPE_FP32, comm, stream));
    CHECKED(HcclBatchSendRecv(items, 2, comm, stream));
    CHECKED(aclrtSynchronizeStream(stream));
    data.expect("all-reduce", [&](uint64_t i) { return me.size * (me.size - 1) / 2 + me.size * (i % 100); });
    broadcast.expect("broadcast", [&](uint64_t i) { return (me.size - 1) * 1000 + i % 100; });
    in.expect("all to all", [&](uint64_t i) { return i / COUNT * 10 + me.rank; });
    ring.expect("ring", [&](uint64_t) { return before * 10; });
}

void run(bool forever) {
    const Place me;
    CHECKED(aclInit(nullptr));
    CHECKED(aclrtSetDevice(static_cast<int32_t>(me.local)));
    HcclRootInfo info{};
    if (me.rank == 0) {
        CHECKED(HcclGetRootInfo(&info));
    }
    share(me, &info);
    HcclComm comm = nullptr;
    aclrtStream stream = nullptr;
    CHECKED(HcclCommInitRootInfo(me.size, &info, me.rank, &comm));
    CHECKED(aclrtCreateStream(&stream));
    exchange(me, comm, stream);
    while (forever) {
        std::printf("right\n");
        std::fflush(stdout);
        exchange(me, comm, stream);
    }
    CHECKED(HcclCommDestroy(comm));
    CHECKED(aclrtDestroyStream(stream));
    CHECKED(aclrtResetDevice(static_cast<int32_t>(me.local)));
    CHECKED(aclFinalize());
    std::printf("rank %u of %u: right, network_bytes %llu\n", me.rank, me.size,
                static_cast<unsigned long long>(adasum_mock_counter("network_bytes")));
}

} // namespace

int main(int argc, char **argv) {
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#endif
    int code = 0;
    try {
        run(argc > 1 && std::strcmp(argv[1], "forever") == 0);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        code = 1;
    }
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return code;
}
