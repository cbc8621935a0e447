// HCCL_MOCK_FAULT: every kind of fault, where it strikes and what the ranks see of it.

#include "harness.h"

using namespace harness;

namespace {

constexpr HcclDataType FP32 = HCCL_DATA_TYPE_FP32;
constexpr int REMOTE = ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
constexpr int TIMEOUT = ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;

HcclResult all_reduce(const World &world, const Vector<float> &data) {
    return HcclAllReduce(data.at(), data.at(), 8, FP32, HCCL_REDUCE_SUM, world.comm, world.stream);
}

// 1:HcclAllReduce:2:die
void dies(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    for (int i = 0; i < 2; i++) {
        OK(all_reduce(world, data));
        world.synchronize();
    }
    if (all_reduce(world, data) == HCCL_SUCCESS) {
        FAILS(REMOTE, "rank 1", aclrtSynchronizeStream(world.stream));
    }
    CHECK(me.rank != 1); // it did not live to see this
}

// 1:HcclBatchSendRecv:1:stall: the peers' limit of time ends it, as that of the vendor ends a wait for a hung rank.
void stalls(const Rank &me) {
    const World world(me);
    const Vector<float> out(8);
    const Vector<float> in(8);
    HcclSendRecvItem items[] = {{HCCL_SEND, out.at(), 8, FP32, 1 - me.rank},
                                {HCCL_RECV, in.at(), 8, FP32, 1 - me.rank}};
    OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    world.synchronize();
    OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    if (me.rank == 1) {
        RETURNS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(world.stream, 300));
        read_file(folder() + "/seen");
        OK(aclrtStreamAbort(world.stream));
    } else {
        FAILS(TIMEOUT, "rank 1 is in its operation 1, HcclBatchSendRecv", aclrtSynchronizeStream(world.stream));
        write_file(folder() + "/seen", "");
    }
}

// 0:HcclAllGather:0:error=4,1:HcclAllReduce:1:error=507015: a code of the call, and one of the stream.
void errors(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    const Vector<float> all(16);
    OK(all_reduce(world, data));
    world.synchronize();
    const HcclResult second = all_reduce(world, data);
    CHECK(second == HCCL_SUCCESS || me.rank == 0); // rank 0 may know already that rank 1 has failed
    if (me.rank == 1) {
        FAILS(507015, "HCCL_MOCK_FAULT", aclrtSynchronizeStream(world.stream));
        RETURNS(HCCL_E_INTERNAL, all_reduce(world, data));
    } else {
        if (second == HCCL_SUCCESS) {
            FAILS(REMOTE, "rank 1 failed", aclrtSynchronizeStream(world.stream));
        }
        // The call counts even on a failed communicator, whose own failure comes first.
        RETURNS(HCCL_E_REMOTE, HcclAllGather(data.at(), all.at(), 8, FP32, world.comm, world.stream));
    }
}

// 0:HcclGetRankSize:1:error=7: any function of the library.
void host_call(const Rank &me) {
    const World world(me);
    uint32_t size = 0;
    OK(HcclGetRankSize(world.comm, &size));
    const HcclResult second = HcclGetRankSize(world.comm, &size);
    CHECK(second == (me.rank == 0 ? HCCL_E_UNAVAIL : HCCL_SUCCESS));
    OK(HcclGetRankSize(world.comm, &size));
}

// 1:HcclAllReduce:0:corrupt,0:HcclSend:0:corrupt: a wrong result on one rank; what is sent is wrong, not the sender's data.
void corrupts(const Rank &me) {
    const World world(me);
    const Vector<float> data(8, [](size_t) { return 1.0F; });
    OK(all_reduce(world, data));
    world.synchronize();
    CHECK((data.get()[0] == 2.0F) == (me.rank == 0) && data.get()[1] == 2.0F);
    const Vector<float> message(8, [](size_t) { return 1.0F; });
    OK(me.rank == 0 ? HcclSend(message.at(), 8, FP32, 1, world.comm, world.stream)
                    : HcclRecv(message.at(), 8, FP32, 0, world.comm, world.stream));
    world.synchronize();
    CHECK((message.get()[0] == 1.0F) == (me.rank == 0) && message.get()[1] == 1.0F);
}

// 0:HcclSend:0:corrupt,1:HcclAlltoAllVC:0:corrupt: also in a group, and by the other name of HcclAlltoAllV.
void corrupts_others(const Rank &me) {
    const World world(me);
    const Vector<float> message(8, [](size_t) { return 1.0F; });
    OK(HcclGroupStart());
    OK(me.rank == 0 ? HcclSend(message.at(), 8, FP32, 1, world.comm, world.stream)
                    : HcclRecv(message.at(), 8, FP32, 0, world.comm, world.stream));
    OK(HcclGroupEnd());
    world.synchronize();
    CHECK((message.get()[0] == 1.0F) == (me.rank == 0) && message.get()[1] == 1.0F);
    const Vector<float> out(8, [](size_t) { return 2.0F; });
    const Vector<float> in(8);
    const uint64_t counts[] = {4, 4, 4, 4};
    OK(HcclAlltoAllVC(out.at(), counts, FP32, in.at(), FP32, world.comm, world.stream));
    world.synchronize();
    CHECK((in.get()[0] == 2.0F) == (me.rank == 0) && in.get()[1] == 2.0F);
}

// 1:HcclAlltoAllV:0:corrupt on a 910A, which tells counts before it: the data is wrong.
void corrupts_behind_counts(const Rank &me) {
    const World world(me);
    const Vector<float> out(8, [](size_t) { return 2.0F; });
    const Vector<float> in(8);
    const uint64_t counts[] = {4, 4};
    const uint64_t places[] = {0, 4};
    OK(HcclAlltoAllV(out.at(), counts, places, FP32, in.at(), counts, places, FP32, world.comm, world.stream));
    world.synchronize();
    CHECK((in.get()[0] == 2.0F) == (me.rank == 0) && in.get()[1] == 2.0F);
}

// 1:HcclBroadcast:*:slow=5: each takes five times as long, its wait for the other rank included.
void slows(const Rank &me) {
    const World world(me);
    const Vector<float> data(8);
    OK(all_reduce(world, data));
    OK(HcclBroadcast(data.at(), 8, FP32, 0, world.comm, world.stream)); // builds links, or that were slow too
    world.synchronize();
    const double begin = now();
    if (me.rank == 0) {
        OK(aclrtLaunchHostFunc(world.stream, [](void *) { pause_ms(200); }, nullptr));
    }
    OK(HcclBroadcast(data.at(), 8, FP32, 0, world.comm, world.stream));
    world.synchronize();
    CHECK(me.rank != 1 || now() - begin > 0.5);
}

// 0:kernel:1:error=507015,0:kernel:2:corrupt
void kernels(const Rank &me) {
    const World world(me);
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    OK(aclrtBinaryLoadFromFile(std::getenv("HARNESS_KERNEL"), nullptr, &binary));
    OK(aclrtBinaryGetFunction(binary, "add_step", &function));
    const Vector<uint32_t> data(8, [](size_t) { return 1U; });
    const auto launch = [&] {
        aclrtArgsHandle arguments = nullptr;
        OK(aclrtKernelArgsInit(function, &arguments));
        for (uint64_t value : {reinterpret_cast<uint64_t>(data.at()), uint64_t{8}, uint64_t{1}}) {
            aclrtParamHandle parameter = nullptr;
            OK(aclrtKernelArgsAppend(arguments, &value, sizeof(value), &parameter));
        }
        OK(aclrtKernelArgsFinalize(arguments));
        OK(aclrtLaunchKernelWithConfig(function, 2, world.stream, nullptr, arguments, nullptr));
    };
    launch();
    world.synchronize();
    launch();
    FAILS(507015, "kernel add_step", aclrtSynchronizeStream(world.stream));
    OK(aclrtStreamAbort(world.stream));
    launch();
    world.synchronize();
    CHECK(data.get()[0] == (3U ^ 0x40000000U) && data.get()[1] == 3U);
    OK(aclrtBinaryUnLoad(binary));
}

void bad_value(const Rank &) {
    OK(aclrtSetDevice(0));
    HcclComm comm = nullptr;
    FAILS(HCCL_E_PARA, "HCCL_MOCK_FAULT", HcclCommInitClusterInfo(table_path().c_str(), 0, &comm));
    uint32_t size = 0;
    FAILS(HCCL_E_PARA, std::getenv("HARNESS_NEEDLE"), HcclGetRankSize(comm, &size));
}

Case bad(const char *name, const char *value, const char *needle) {
    return {name, Ranks::Processes, 1, bad_value, {{"HCCL_MOCK_FAULT", value}, {"HARNESS_NEEDLE", needle}}};
}

std::pair<std::string, std::string> faults(const char *value) { return {"HCCL_MOCK_FAULT", value}; }

} // namespace

int main(int argc, char **argv) {
    return run(
        argc, argv,
        {
            {"inject-die", Ranks::Processes, 3, dies, {faults("1:HcclAllReduce:2:die")}, 1},
            {"inject-stall-t",
             Ranks::Threads,
             2,
             stalls,
             {faults("1:HcclBatchSendRecv:1:stall"), {"HCCL_EXEC_TIMEOUT", "1"}}},
            {"inject-stall-p",
             Ranks::Processes,
             2,
             stalls,
             {faults("1:HcclBatchSendRecv:1:stall"), {"HCCL_EXEC_TIMEOUT", "1"}}},
            {"inject-error",
             Ranks::Threads,
             2,
             errors,
             {faults("0:HcclAllGather:0:error=4,1:HcclAllReduce:1:error=507015")}},
            {"inject-host-call", Ranks::Threads, 2, host_call, {faults("0:HcclGetRankSize:1:error=7")}},
            {"inject-corrupt", Ranks::Threads, 2, corrupts, {faults("1:HcclAllReduce:0:corrupt,0:HcclSend:0:corrupt")}},
            {"inject-corrupt-others",
             Ranks::Threads,
             2,
             corrupts_others,
             {faults("0:HcclSend:0:corrupt,1:HcclAlltoAllVC:0:corrupt"), {"ASCEND_MOCK_CANN", "9.0.0"}}},
            {"inject-corrupt-behind-counts",
             Ranks::Threads,
             2,
             corrupts_behind_counts,
             {faults("1:HcclAlltoAllV:0:corrupt"), {"ASCEND_MOCK_SOC", "Ascend910A"}}},
            {"inject-slow", Ranks::Threads, 2, slows, {faults("1:HcclBroadcast:*:slow=5")}},
            {"inject-kernel", Ranks::Threads, 1, kernels, {faults("0:kernel:1:error=507015,0:kernel:2:corrupt")}},
            bad("inject-bad-form", "1:HcclSend:die", "[1:HcclSend:die] is not rank:op:index:kind"),
            bad("inject-bad-rank", "x:*:0:die", "[x:*:0:die] is not"),
            bad("inject-bad-kind", "0:*:0:die,0:*:1:dye", "[0:*:1:dye] is not"),
            bad("inject-bad-code", "0:*:0:error=", "[0:*:0:error=] is not"),
            bad("inject-bad-hold", "0:kernel:0:hold=1", "[0:kernel:0:hold=1] is not"),
            bad("inject-bad-factor", "0:*:0:slow=0.5", "[0:*:0:slow=0.5] is not"),
            bad("inject-bad-function", "0:HcclSent:0:die", "HcclSent, which is no function"),
        });
}
