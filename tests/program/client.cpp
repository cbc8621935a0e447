// A C++ program for ACL and HCCL, as somebody else would write it: nothing of adasum is used. Four ranks, each a
// thread with a device of its own, sum a vector and pass it around a ring. "HCCL": root info, collectives, batches.

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace {

constexpr uint32_t kRanks = 4;
constexpr size_t kCount = 10'000;
constexpr size_t kBytes = kCount * sizeof(float);

void must(int code, const char *what) {
    if (code != 0) {
        std::fprintf(stderr, "%s: %d %s\n", what, code, aclGetRecentErrMsg());
        std::exit(1);
    }
}
#define MUST(call) must(static_cast<int>(call), #call)

// Device memory of the calling thread's device.
class Vector {
public:
    explicit Vector(float value) {
        MUST(aclrtMalloc(&address_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
        const std::vector<float> host(kCount, value);
        MUST(aclrtMemcpy(address_, kBytes, host.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    ~Vector() { MUST(aclrtFree(address_)); }
    Vector(const Vector &) = delete;
    Vector &operator=(const Vector &) = delete;

    void *address() const { return address_; }

    void expect(float value, const char *what) const {
        std::vector<float> host(kCount);
        MUST(aclrtMemcpy(host.data(), kBytes, address_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
        for (float found : host) {
            if (found != value) {
                std::fprintf(stderr, "%s: %g instead of %g\n", what, static_cast<double>(found),
                             static_cast<double>(value));
                std::exit(1);
            }
        }
    }

private:
    void *address_ = nullptr;
};

void run(uint32_t rank, const HcclRootInfo *root) {
    MUST(aclrtSetDevice(static_cast<int32_t>(rank)));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    config.hcclBufferSize = 1;
    HcclComm comm = nullptr;
    MUST(HcclCommInitRootInfoConfig(kRanks, root, rank, &config, &comm));
    aclrtStream stream = nullptr;
    MUST(aclrtCreateStream(&stream));
    {
        const Vector own(static_cast<float>(rank + 1)), sum(0), passed(0);
        MUST(HcclAllReduce(own.address(), sum.address(), kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
        const uint32_t next = (rank + 1) % kRanks, previous = (rank + kRanks - 1) % kRanks;
        HcclSendRecvItem items[] = {{HCCL_SEND, own.address(), kCount, HCCL_DATA_TYPE_FP32, next},
                                    {HCCL_RECV, passed.address(), kCount, HCCL_DATA_TYPE_FP32, previous}};
        MUST(HcclBatchSendRecv(items, 2, comm, stream));
        MUST(aclrtSynchronizeStream(stream));
        sum.expect(10, "the sum of 1, 2, 3, 4");
        passed.expect(static_cast<float>(previous + 1), "what the rank before has");
    }
    MUST(HcclCommDestroy(comm));
    MUST(aclrtDestroyStream(stream));
    MUST(aclrtResetDevice(static_cast<int32_t>(rank)));
}

} // namespace

int main() {
    MUST(aclInit(nullptr));
    MUST(aclrtSetDevice(0));
    HcclRootInfo root;
    MUST(HcclGetRootInfo(&root));
    std::vector<std::thread> ranks;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
        ranks.emplace_back(run, rank, &root);
    }
    for (std::thread &rank : ranks) {
        rank.join();
    }
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    std::printf("client.cpp: %u ranks right\n", kRanks);
    return 0;
}
