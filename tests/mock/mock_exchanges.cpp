// Every collective with every data type and reduction, for ranks as threads and as processes: which ones a processor has,
// and what they give. Expected values come from the definition of each operation, in whole numbers.

#include <cmath>

#include "harness.h"

using namespace harness;

namespace {

struct Type {
    HcclDataType number;
    uint64_t bytes;
};

const std::vector<Type> TYPES = {
    {HCCL_DATA_TYPE_INT8, 1},    {HCCL_DATA_TYPE_INT16, 2},  {HCCL_DATA_TYPE_INT32, 4},   {HCCL_DATA_TYPE_FP16, 2},
    {HCCL_DATA_TYPE_FP32, 4},    {HCCL_DATA_TYPE_INT64, 8},  {HCCL_DATA_TYPE_UINT64, 8},  {HCCL_DATA_TYPE_UINT8, 1},
    {HCCL_DATA_TYPE_UINT16, 2},  {HCCL_DATA_TYPE_UINT32, 4}, {HCCL_DATA_TYPE_FP64, 8},    {HCCL_DATA_TYPE_BFP16, 2},
    {HCCL_DATA_TYPE_INT128, 16}, {HCCL_DATA_TYPE_HIF8, 1},   {HCCL_DATA_TYPE_FP8E4M3, 1}, {HCCL_DATA_TYPE_FP8E5M2, 1},
    {HCCL_DATA_TYPE_FP8E8M0, 1},
};

const HcclReduceOp REDUCTIONS[] = {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN};

// The processor that is played.
std::string soc() {
    const char *name = std::getenv("ASCEND_MOCK_SOC");
    return name != nullptr ? name : "Ascend910B1";
}
bool is_910a() { return soc() == "Ascend910A"; }
bool is_950() { return soc().rfind("Ascend950", 0) == 0; }
bool is_310p() { return soc().rfind("Ascend310P", 0) == 0; }
bool is_a3() { return soc().rfind("Ascend910_93", 0) == 0; }

// Data movement: 1 to 8 bytes; bf16 not on the 910A, 8-bit floats on the 950 only.
bool moves(const Type &type) {
    switch (type.number) {
    case HCCL_DATA_TYPE_INT128: return false;
    case HCCL_DATA_TYPE_BFP16: return !is_910a();
    case HCCL_DATA_TYPE_HIF8:
    case HCCL_DATA_TYPE_FP8E4M3:
    case HCCL_DATA_TYPE_FP8E5M2:
    case HCCL_DATA_TYPE_FP8E8M0: return is_950();
    default: return true;
    }
}

// Reductions: 910A int8, int32, int64, fp16, fp32; 310P int8, int16, int32, fp16, fp32; A2 all of these and bf16; A3 as the
// A2 without int64 (its AICPU and AIV modes have none); 950 as the A2, with fp64 and uint64. No product of int16 and bf16.
bool reduces(const Type &type, HcclReduceOp op) {
    switch (type.number) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_FP32: return true;
    case HCCL_DATA_TYPE_INT16: return op != HCCL_REDUCE_PROD && !is_910a();
    case HCCL_DATA_TYPE_INT64: return !is_310p() && !is_a3();
    case HCCL_DATA_TYPE_BFP16: return op != HCCL_REDUCE_PROD && !is_910a() && !is_310p();
    case HCCL_DATA_TYPE_FP64:
    case HCCL_DATA_TYPE_UINT64: return is_950();
    default: return false;
    }
}

// A small whole number in the form of the type, for those that can be reduced.
std::vector<char> encode(const Type &type, int64_t number) {
    std::vector<char> bytes(type.bytes);
    const auto put = [&](auto value) { std::memcpy(bytes.data(), &value, sizeof(value)); };
    const auto single = static_cast<float>(number);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof(bits));
    switch (type.number) {
    case HCCL_DATA_TYPE_FP32: put(single); break;
    case HCCL_DATA_TYPE_FP64: put(static_cast<double>(number)); break;
    case HCCL_DATA_TYPE_BFP16: put(static_cast<uint16_t>(bits >> 16)); break;
    case HCCL_DATA_TYPE_FP16: // exact up to 2048
        put(static_cast<uint16_t>(number == 0 ? 0 : ((bits >> 13) & 0x3ff) | (((bits >> 23) - 112) << 10)));
        break;
    default: std::memcpy(bytes.data(), &number, type.bytes); // the low bytes come first
    }
    return bytes;
}

// Device memory for elements of any type.
class Buffer {
public:
    Buffer(uint64_t bytes, char fill) : memory_(bytes + 1, [fill](size_t) { return fill; }) {}
    Buffer(const std::vector<char> &bytes) : memory_(bytes.size() + 1) {
        if (!bytes.empty()) {
            OK(aclrtMemcpy(memory_.at(), bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE));
        }
    }
    void *at(uint64_t byte = 0) const { return memory_.at(byte); }
    void expect(const std::vector<char> &wanted, const char *what, const Type &type, HcclReduceOp op) const {
        const std::vector<char> got = memory_.get();
        for (size_t i = 0; i < wanted.size(); i++) {
            if (got[i] != wanted[i]) {
                throw std::runtime_error(
                    text("%s, type %d, op %d: byte %zu is %d, not %d", what, type.number, op, i, got[i], wanted[i]));
            }
        }
    }
    void expect(const std::vector<char> &wanted, const char *what, const Type &type) const {
        expect(wanted, what, type, HCCL_REDUCE_RESERVED);
    }

private:
    Vector<char> memory_;
};

// What rank `rank` gives at place `i`. Products and sums of 64 ranks stay within 8 bits.
int64_t given(HcclReduceOp op, uint32_t rank, uint64_t i) {
    if (op == HCCL_REDUCE_MAX || op == HCCL_REDUCE_MIN) {
        return static_cast<int64_t>((rank * 7 + i * 3) % 61);
    }
    return rank < 6 && (rank + i) % 3 == 0 ? 2 : 1;
}

int64_t combined(HcclReduceOp op, uint32_t ranks, uint64_t i) {
    int64_t value = given(op, 0, i);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        const int64_t next = given(op, rank, i);
        value = op == HCCL_REDUCE_SUM    ? value + next
                : op == HCCL_REDUCE_PROD ? value * next
                : op == HCCL_REDUCE_MAX  ? std::max(value, next)
                                         : std::min(value, next);
    }
    return value;
}

std::vector<char> elements(const Type &type, uint64_t first, uint64_t count,
                           const std::function<int64_t(uint64_t)> &number) {
    std::vector<char> all;
    for (uint64_t i = first; i < first + count; i++) {
        const std::vector<char> one = encode(type, number(i));
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

// All reductions of one type with one operation: every rank gives `count` elements for each rank.
void reduce_all(const Rank &me, const World &world, const Type &type, HcclReduceOp op, uint64_t count) {
    const uint64_t total = count * me.size;
    const auto mine = [&](uint64_t i) { return given(op, me.rank, i); };
    const auto result = [&](uint64_t i) { return combined(op, me.size, i); };
    const uint32_t root = me.size / 2;
    const Buffer send(elements(type, 0, total, mine));
    const Buffer in_place(elements(type, 0, total, mine));
    const Buffer whole(total * type.bytes, -1);
    const Buffer rooted(total * type.bytes, -1);
    const Buffer part(count * type.bytes, -1);
    // The last rank gets twice as much as others, the first nothing.
    std::vector<uint64_t> counts(me.size, count);
    std::vector<uint64_t> places(me.size);
    counts.back() *= me.size > 1 ? 2 : 1;
    counts.front() = me.size > 1 ? 0 : count;
    for (size_t i = 1; i < counts.size(); i++) {
        places[i] = places[i - 1] + counts[i - 1];
    }
    const Buffer uneven(counts[me.rank] * type.bytes, -1);
    OK(HcclAllReduce(send.at(), whole.at(), total, type.number, op, world.comm, world.stream));
    OK(HcclAllReduce(in_place.at(), in_place.at(), total, type.number, op, world.comm, world.stream));
    OK(HcclReduce(send.at(), rooted.at(), total, type.number, op, root, world.comm, world.stream));
    OK(HcclReduceScatter(send.at(), part.at(), count, type.number, op, world.comm, world.stream));
    OK(HcclReduceScatterV(send.at(), counts.data(), places.data(), uneven.at(), counts[me.rank], type.number, op,
                          world.comm, world.stream));
    world.synchronize();
    const std::vector<char> wanted = elements(type, 0, total, result);
    whole.expect(wanted, "all-reduce", type, op);
    in_place.expect(wanted, "all-reduce in place", type, op);
    rooted.expect(me.rank == root ? wanted : std::vector<char>(wanted.size(), -1), "reduce", type, op);
    part.expect(elements(type, me.rank * count, count, result), "reduce-scatter", type, op);
    uneven.expect(elements(type, places[me.rank], counts[me.rank], result), "reduce-scatter with counts", type, op);
}

void refuse_all(const World &world, const Type &type, HcclReduceOp op, uint64_t count) {
    const Buffer send(count * 16 * 64, 0);
    const Buffer recv(count * 16 * 64, 0);
    RETURNS(HCCL_E_NOT_SUPPORT, HcclAllReduce(send.at(), recv.at(), count, type.number, op, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclReduce(send.at(), recv.at(), count, type.number, op, 0, world.comm, world.stream));
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclReduceScatter(send.at(), recv.at(), count, type.number, op, world.comm, world.stream));
    const std::vector<uint64_t> counts(64, count);
    RETURNS(HCCL_E_NOT_SUPPORT, HcclReduceScatterV(send.at(), counts.data(), counts.data(), recv.at(), count,
                                                   type.number, op, world.comm, world.stream));
}

void reductions(const Rank &me) {
    const World world(me);
    int refused = 0;
    for (const Type &type : TYPES) {
        for (const HcclReduceOp op : REDUCTIONS) {
            if (reduces(type, op)) {
                reduce_all(me, world, type, op, 5);
            } else {
                refuse_all(world, type, op, 5);
                refused++;
            }
        }
    }
    CHECK(refused > 0);
    // Large enough that ranks share the work of an all-reduce.
    reduce_all(me, world, {HCCL_DATA_TYPE_FP32, 4}, HCCL_REDUCE_SUM, me.size > 16 ? 101 : 5003);
    reduce_all(me, world, {HCCL_DATA_TYPE_INT8, 1}, HCCL_REDUCE_MAX, me.size > 16 ? 301 : 20011);
}

// Bytes that tell where they come from and where they are meant to go.
std::vector<char> parcel(uint32_t from, uint32_t to, uint64_t bytes) {
    std::vector<char> content(bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        content[i] = static_cast<char>(from * 31 + to * 17 + i * 7 + i / 256);
    }
    return content;
}

void append(std::vector<char> *all, const std::vector<char> &more) {
    all->insert(all->end(), more.begin(), more.end());
}

// Elements that a rank sends to another where counts differ; some are 0.
uint64_t elements_of(uint32_t from, uint32_t to) { return (from * 3 + to * 5) % 7 * 3; }

void move_equal(const Rank &me, const World &world, const Type &type, uint64_t count) {
    const uint64_t bytes = count * type.bytes;
    const uint32_t root = me.size - 1;
    std::vector<char> out;
    std::vector<char> from_all;
    std::vector<char> root_out;
    std::vector<char> gathered;
    for (uint32_t peer = 0; peer < me.size; peer++) {
        append(&out, parcel(me.rank, peer, bytes));
        append(&from_all, parcel(peer, me.rank, bytes));
        append(&root_out, parcel(root, peer, bytes));
        append(&gathered, parcel(peer, 0, bytes));
    }
    const Buffer send(out);
    const Buffer all_to_all(out.size(), 0);
    const Buffer own(parcel(me.rank, 0, bytes));
    const Buffer gather(gathered.size(), 0);
    const Buffer broadcast(me.rank == root ? root_out : std::vector<char>(root_out.size()));
    const Buffer scattered(bytes, 0);
    OK(HcclAlltoAll(send.at(), count, type.number, all_to_all.at(), count, type.number, world.comm, world.stream));
    OK(HcclAllGather(own.at(), gather.at(), count, type.number, world.comm, world.stream));
    OK(HcclBroadcast(broadcast.at(), count * me.size, type.number, root, world.comm, world.stream));
    OK(HcclScatter(me.rank == root ? send.at() : nullptr, scattered.at(), count, type.number, root, world.comm,
                   world.stream));
    world.synchronize();
    all_to_all.expect(from_all, "all to all", type);
    gather.expect(gathered, "all-gather", type);
    broadcast.expect(root_out, "broadcast", type);
    scattered.expect(parcel(root, me.rank, bytes), "scatter", type);
}

// The forms with a count per rank; in memory there are gaps of one element.
void move_uneven(const Rank &me, const World &world, const Type &type) {
    std::vector<uint64_t> sends, send_places, recvs, recv_places, matrix, shares, share_places;
    std::vector<char> out, dense, wanted, dense_wanted, gathered;
    const std::vector<char> gap(type.bytes, 0);
    for (uint32_t peer = 0; peer < me.size; peer++) {
        sends.push_back(elements_of(me.rank, peer));
        recvs.push_back(elements_of(peer, me.rank));
        shares.push_back(elements_of(peer, 0));
        send_places.push_back(out.size() / type.bytes);
        recv_places.push_back(wanted.size() / type.bytes);
        share_places.push_back(gathered.size() / type.bytes);
        append(&out, parcel(me.rank, peer, sends[peer] * type.bytes));
        append(&wanted, parcel(peer, me.rank, recvs[peer] * type.bytes));
        append(&dense, parcel(me.rank, peer, sends[peer] * type.bytes));
        append(&dense_wanted, parcel(peer, me.rank, recvs[peer] * type.bytes));
        append(&gathered, parcel(peer, 0, shares[peer] * type.bytes));
        for (std::vector<char> *with_gaps : {&out, &wanted, &gathered}) {
            append(with_gaps, gap);
        }
        for (uint32_t to = 0; to < me.size; to++) {
            matrix.push_back(elements_of(peer, to));
        }
    }
    const Buffer send(out), recv(wanted.size(), 0), dense_send(dense), dense_recv(dense_wanted.size(), 0);
    const Buffer share(parcel(me.rank, 0, shares[me.rank] * type.bytes)), gather(gathered.size(), 0);
    OK(HcclAlltoAllV(send.at(), sends.data(), send_places.data(), type.number, recv.at(), recvs.data(),
                     recv_places.data(), type.number, world.comm, world.stream));
    OK(HcclAlltoAllVC(dense_send.at(), matrix.data(), type.number, dense_recv.at(), type.number, world.comm,
                      world.stream));
    OK(HcclAllGatherV(share.at(), shares[me.rank], gather.at(), shares.data(), share_places.data(), type.number,
                      world.comm, world.stream));
    world.synchronize();
    recv.expect(wanted, "all to all with counts", type);
    dense_recv.expect(dense_wanted, "all to all with a matrix", type);
    gather.expect(gathered, "all-gather with counts", type);
}

// A ring of sends and receives, one of a batch, one of a group.
void move_in_pairs(const Rank &me, const World &world, const Type &type, uint64_t count) {
    if (me.size == 1) {
        return;
    }
    const uint64_t bytes = count * type.bytes;
    const uint32_t next = (me.rank + 1) % me.size;
    const uint32_t before = (me.rank + me.size - 1) % me.size;
    const Buffer out(parcel(me.rank, next, bytes));
    const Buffer in(bytes, 0), batch(bytes, 0), group(bytes, 0);
    for (const bool sends : {me.rank % 2 == 0, me.rank % 2 != 0}) {
        if (sends) {
            OK(HcclSend(out.at(), count, type.number, next, world.comm, world.stream));
        } else {
            OK(HcclRecv(in.at(), count, type.number, before, world.comm, world.stream));
        }
    }
    HcclSendRecvItem items[] = {{HCCL_SEND, out.at(), count, type.number, next},
                                {HCCL_RECV, batch.at(), count, type.number, before}};
    if (!is_310p()) {
        OK(HcclBatchSendRecv(items, 2, world.comm, world.stream));
    }
    if (!is_910a() && !is_310p()) {
        OK(HcclGroupStart());
        OK(HcclSend(out.at(), count, type.number, next, world.comm, world.stream));
        OK(HcclRecv(group.at(), count, type.number, before, world.comm, world.stream));
        OK(HcclGroupEnd());
    }
    world.synchronize();
    const std::vector<char> wanted = parcel(before, me.rank, bytes);
    in.expect(wanted, "ring", type);
    batch.expect(is_310p() ? std::vector<char>(bytes) : wanted, "batch", type);
    group.expect(is_910a() || is_310p() ? std::vector<char>(bytes) : wanted, "group", type);
}

void refuse_moves(const Rank &me, const World &world, const Type &type) {
    const Buffer a(64 * 64 * 16, 0);
    const Buffer b(64 * 64 * 16, 0);
    const std::vector<uint64_t> counts(64 * 64, 1);
    const auto t = type.number;
    const HcclComm c = world.comm;
    const aclrtStream s = world.stream;
    const uint32_t peer = (me.rank + 1) % me.size;
    HcclSendRecvItem item = {HCCL_SEND, a.at(), 1, t, peer};
    RETURNS(HCCL_E_NOT_SUPPORT, HcclSend(a.at(), 1, t, peer, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclRecv(a.at(), 1, t, peer, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclBatchSendRecv(&item, 1, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclAllGather(a.at(), b.at(), 1, t, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclBroadcast(a.at(), 1, t, 0, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclScatter(a.at(), b.at(), 1, t, 0, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclAlltoAll(a.at(), 1, t, b.at(), 1, t, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT,
            HcclAlltoAllV(a.at(), counts.data(), counts.data(), t, b.at(), counts.data(), counts.data(), t, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclAlltoAllVC(a.at(), counts.data(), t, b.at(), t, c, s));
    RETURNS(HCCL_E_NOT_SUPPORT, HcclAllGatherV(a.at(), 1, b.at(), counts.data(), counts.data(), t, c, s));
}

void movements(const Rank &me) {
    const World world(me);
    int refused = 0;
    for (const Type &type : TYPES) {
        if (!moves(type)) {
            refuse_moves(me, world, type);
            refused++;
            continue;
        }
        move_equal(me, world, type, 3);
        move_uneven(me, world, type);
        move_in_pairs(me, world, type, 33);
    }
    CHECK(refused > 0);
    const Type fp32{HCCL_DATA_TYPE_FP32, 4};
    move_equal(me, world, fp32, me.size > 16 ? 500 : 30011);
    move_in_pairs(me, world, fp32, 300007); // more than a megabyte
    if (!is_310p()) {
        OK(HcclBarrier(world.comm, world.stream));
        world.synchronize();
    }
}

} // namespace

int main(int argc, char **argv) {
    const auto on = [](const char *name) {
        return std::vector<std::pair<std::string, std::string>>{{"ASCEND_MOCK_SOC", name}};
    };
    setenv("ASCEND_MOCK_CANN", "9.0.0", 0); // has groups
    return run(argc, argv,
               {
                   {"reductions-t1", Ranks::Threads, 1, reductions},
                   {"reductions-t4", Ranks::Threads, 4, reductions},
                   {"reductions-t64", Ranks::Threads, 64, reductions},
                   {"reductions-p16", Ranks::Processes, 16, reductions},
                   {"movements-t1", Ranks::Threads, 1, movements},
                   {"movements-t5", Ranks::Threads, 5, movements},
                   {"movements-t64", Ranks::Threads, 64, movements},
                   {"movements-p16", Ranks::Processes, 16, movements},
                   {"reductions-910A", Ranks::Threads, 4, reductions, on("Ascend910A")},
                   {"reductions-310P", Ranks::Threads, 4, reductions, on("Ascend310P3")},
                   {"reductions-A3", Ranks::Threads, 4, reductions, on("Ascend910_9391")},
                   {"reductions-950", Ranks::Threads, 4, reductions, on("Ascend950PR_9599")},
                   {"movements-910A", Ranks::Threads, 4, movements, on("Ascend910A")},
                   {"movements-310P", Ranks::Threads, 4, movements, on("Ascend310P3")},
                   {"movements-A3", Ranks::Threads, 4, movements, on("Ascend910_9391")},
                   {"movements-950", Ranks::Threads, 4, movements, on("Ascend950PR_9599")},
               });
}
