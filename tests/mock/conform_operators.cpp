// The single operators as clients call them: looked up in libopapi.so, described by a first call and queued by a second.

#include <cstring>

#include <dlfcn.h>

#include "conform.h"

using namespace harness;

namespace {

struct Tensor;
struct Executor;
using Integers = std::vector<int64_t>;

template <class Function>
Function *look_up(const char *name) {
    static void *library = dlopen("libopapi.so", RTLD_NOW);
    CHECK(library != nullptr);
    void *found = dlsym(library, name);
    CHECK(found != nullptr);
    return reinterpret_cast<Function *>(found);
}

// Memory of the device with a host side.
template <class Value>
struct Array {
    explicit Array(std::vector<Value> content) : values(std::move(content)) {
        OK(aclrtMalloc(&address, bytes(), ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclrtMemcpy(address, bytes(), values.data(), bytes(), ACL_MEMCPY_HOST_TO_DEVICE));
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() { aclrtFree(address); }
    size_t bytes() const { return values.size() * sizeof(Value); }
    const std::vector<Value> &read() {
        OK(aclrtMemcpy(values.data(), bytes(), address, bytes(), ACL_MEMCPY_DEVICE_TO_HOST));
        return values;
    }
    std::vector<Value> values;
    void *address = nullptr;
};

// A view, ended by itself.
struct View {
    View(void *data, aclDataType type, const Integers &shape, const Integers &strides, int64_t offset = 0) {
        constexpr int32_t ND = 2;
        const Integers storage{1};
        tensor = look_up<Tensor *(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t, int32_t,
                                  const int64_t *, uint64_t, void *)>("aclCreateTensor")(
            shape.data(), shape.size(), type, strides.data(), offset, ND, storage.data(), 1, data);
        CHECK(tensor != nullptr);
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;
    ~View() { look_up<aclError(const Tensor *)>("aclDestroyTensor")(tensor); }
    Tensor *tensor;
};

// The second call of an operator, and a wait.
void run_operator(const char *name, uint64_t workspace, Executor *executor, aclrtStream stream) {
    CHECK(workspace == 0);
    OK(look_up<aclError(void *, uint64_t, Executor *, aclrtStream)>(name)(nullptr, 0, executor, stream));
    OK(aclrtSynchronizeStream(stream));
}

aclError describe_copy(const View &to, const View &from, uint64_t *workspace, Executor **executor) {
    return look_up<aclError(Tensor *, const Tensor *, uint64_t *, Executor **)>("aclnnInplaceCopyGetWorkspaceSize")(
        to.tensor, from.tensor, workspace, executor);
}

void copy(const World &world, const View &to, const View &from) {
    uint64_t workspace = 1;
    Executor *executor = nullptr;
    OK(describe_copy(to, from, &workspace, &executor));
    run_operator("aclnnInplaceCopy", workspace, executor, world.stream);
}

void fill(const World &world, const std::string &name, const View &view) {
    uint64_t workspace = 1;
    Executor *executor = nullptr;
    OK(look_up<aclError(const Tensor *, uint64_t *, Executor **)>((name + "GetWorkspaceSize").c_str())(
        view.tensor, &workspace, &executor));
    run_operator(name.c_str(), workspace, executor, world.stream);
}

// aclnnInplaceCopy follows strides and offsets on both sides: a transposed part of a matrix.
const Behaviour strided("copy-strided", [](const Rank &me) {
    const World world(me, false);
    Array<float> from({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    Array<float> to(std::vector<float>(6, -1));
    copy(world, View(to.address, ACL_FLOAT, {2, 3}, {3, 1}), View(from.address, ACL_FLOAT, {2, 3}, {1, 4}, 2));
    CHECK((to.read() == std::vector<float>{2, 6, 10, 3, 7, 11}));
});

// It repeats axes of length 1 and those that are missing in front.
const Behaviour broadcast("copy-broadcast", [](const Rank &me) {
    const World world(me, false);
    Array<int32_t> from({7, 8});
    Array<int32_t> to(std::vector<int32_t>(6, 0));
    copy(world, View(to.address, ACL_INT32, {3, 2}, {2, 1}), View(from.address, ACL_INT32, {2}, {1}));
    CHECK((to.read() == std::vector<int32_t>{7, 8, 7, 8, 7, 8}));
    copy(world, View(to.address, ACL_INT32, {2, 3}, {3, 1}), View(from.address, ACL_INT32, {2, 1}, {1, 1}));
    CHECK((to.read() == std::vector<int32_t>{7, 7, 7, 8, 8, 8}));
});

// It converts: to nearest for floating point, towards zero for integers, anything but zero is true.
const Behaviour conversions("copy-conversions", [](const Rank &me) {
    const World world(me, false);
    Array<float> from({1.0F, -2.75F, 0.0F, 65504.0F});
    Array<uint16_t> half(std::vector<uint16_t>(4, 0));
    Array<int64_t> whole(std::vector<int64_t>(4, 0));
    Array<uint8_t> truth(std::vector<uint8_t>(4, 9));
    Array<float> back(std::vector<float>(4, 0));
    const View source(from.address, ACL_FLOAT, {4}, {1});
    copy(world, View(half.address, ACL_FLOAT16, {4}, {1}), source);
    CHECK((half.read() == std::vector<uint16_t>{0x3c00, 0xc180, 0, 0x7bff}));
    copy(world, View(whole.address, ACL_INT64, {4}, {1}), source);
    CHECK((whole.read() == std::vector<int64_t>{1, -2, 0, 65504}));
    copy(world, View(truth.address, ACL_BOOL, {4}, {1}), source);
    CHECK((truth.read() == std::vector<uint8_t>{1, 1, 0, 1}));
    copy(world, View(half.address, ACL_BF16, {4}, {1}), source);
    CHECK((half.read() == std::vector<uint16_t>{0x3f80, 0xc030, 0, 0x4780}));
    copy(world, View(back.address, ACL_FLOAT, {4}, {1}), View(half.address, ACL_BF16, {4}, {1}));
    CHECK((back.read() == std::vector<float>{1.0F, -2.75F, 0.0F, 65536.0F}));
});

// Tensors without axes or without elements are tensors.
const Behaviour small("copy-small", [](const Rank &me) {
    const World world(me, false);
    Array<float> from({3});
    Array<float> to({0});
    copy(world, View(to.address, ACL_FLOAT, {}, {}), View(from.address, ACL_FLOAT, {}, {}));
    CHECK(to.read()[0] == 3);
    copy(world, View(nullptr, ACL_FLOAT, {0, 4}, {4, 1}), View(nullptr, ACL_FLOAT, {0, 4}, {4, 1}));
});

// aclnnInplaceOne and aclnnInplaceZero write the elements of the view and no others.
const Behaviour fills("fill", [](const Rank &me) {
    const World world(me, false);
    Array<float> memory({5, 5, 5, 5, 5});
    fill(world, "aclnnInplaceOne", View(memory.address, ACL_FLOAT, {2}, {2}, 1));
    CHECK((memory.read() == std::vector<float>{5, 1, 5, 1, 5}));
    fill(world, "aclnnInplaceZero", View(memory.address, ACL_FLOAT, {5}, {1}));
    CHECK((memory.read() == std::vector<float>(5, 0)));
});

// Shapes that do not fit, and memory that is not all of the device's, are refused by the first call.
const Behaviour refused("operator-refused", [](const Rank &me) {
    const World world(me, false);
    Array<float> memory({1, 2, 3});
    std::vector<float> host(3);
    uint64_t workspace = 0;
    Executor *executor = nullptr;
    const View three(memory.address, ACL_FLOAT, {3}, {1});
    RETURNS(161002, describe_copy(three, View(memory.address, ACL_FLOAT, {2}, {1}), &workspace, &executor));
    RETURNS(161002, describe_copy(View(memory.address, ACL_FLOAT, {1000}, {1}), three, &workspace, &executor));
    RETURNS(161002, describe_copy(three, View(host.data(), ACL_FLOAT, {3}, {1}), &workspace, &executor));
    CHECK(executor == nullptr);
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
