// The single operators as clients call them: looked up in libopapi.so, described by a first call and queued by a second. Their
// signatures are those of the vendor's operator library: op_api/aclnn_<name>.h of each operator of ops-math, and its page
// docs/aclnn<Name>.md; tensors, scalars and lists are those of aclnn/acl_meta.h.

#include <cmath>
#include <cstring>
#include <limits>

#include <dlfcn.h>

#include "conform.h"

using namespace harness;

namespace {

struct Tensor;
struct Scalar;
struct TensorList;
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

// A number of the host, ended by itself.
struct Number {
    template <class Value>
    Number(Value value, aclDataType type) {
        scalar = look_up<Scalar *(void *, aclDataType)>("aclCreateScalar")(&value, type);
        CHECK(scalar != nullptr);
    }
    Number(const Number &) = delete;
    Number &operator=(const Number &) = delete;
    ~Number() { OK(look_up<aclError(const Scalar *)>("aclDestroyScalar")(scalar)); }
    Scalar *scalar;
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

// The first call of an operator with these arguments.
template <class... Arguments>
aclError describe(const std::string &name, uint64_t *workspace, Executor **executor, Arguments... arguments) {
    return look_up<aclError(Arguments..., uint64_t *, Executor **)>((name + "GetWorkspaceSize").c_str())(
        arguments..., workspace, executor);
}

template <class... Arguments>
void operate(const World &world, const std::string &name, Arguments... arguments) {
    uint64_t workspace = 1;
    Executor *executor = nullptr;
    OK(describe(name, &workspace, &executor, arguments...));
    run_operator(name.c_str(), workspace, executor, world.stream);
}

// aclnnInplaceFillScalar converts the number to the type of the tensor (aclnn_fill_scalar.h).
const Behaviour fill_scalar("fill-scalar", [](const Rank &me) {
    const World world(me, false);
    Array<float> memory({5, 5, 5});
    operate(world, "aclnnInplaceFillScalar", View(memory.address, ACL_FLOAT, {2}, {2}).tensor,
            static_cast<const Scalar *>(Number(2.5, ACL_DOUBLE).scalar));
    CHECK((memory.read() == std::vector<float>{2.5F, 5, 2.5F}));
    Array<int32_t> whole({5, 5});
    operate(world, "aclnnInplaceFillScalar", View(whole.address, ACL_INT32, {2}, {1}).tensor,
            static_cast<const Scalar *>(Number(int64_t{-7}, ACL_INT64).scalar));
    CHECK((whole.read() == std::vector<int32_t>{-7, -7}));
});

// aclnnCast(self, dtype, out): dtype is the type of out, the shapes are the same (aclnn_cast.h).
const Behaviour cast("cast", [](const Rank &me) {
    const World world(me, false);
    Array<float> from({1.5F, -2.75F});
    Array<int32_t> to({0, 0});
    const View self(from.address, ACL_FLOAT, {2}, {1});
    const View out(to.address, ACL_INT32, {2}, {1});
    operate(world, "aclnnCast", static_cast<const Tensor *>(self.tensor), ACL_INT32, out.tensor);
    CHECK((to.read() == std::vector<int32_t>{1, -2}));
    uint64_t workspace = 0;
    Executor *executor = nullptr;
    RETURNS(161002, describe("aclnnCast", &workspace, &executor, static_cast<const Tensor *>(self.tensor), ACL_INT64,
                             out.tensor));
});

// A list owns its tensors: aclDestroyTensorList ends them, too (acl_meta.h).
TensorList *list_of(const std::vector<Tensor *> &tensors) {
    TensorList *list =
        look_up<TensorList *(Tensor *const *, uint64_t)>("aclCreateTensorList")(tensors.data(), tensors.size());
    CHECK(list != nullptr);
    return list;
}

Tensor *bare_tensor(void *data, aclDataType type, const Integers &shape, const Integers &strides) {
    View view(data, type, shape, strides);
    Tensor *const tensor = view.tensor;
    view.tensor = nullptr; // ending nothing is no error
    return tensor;
}

// aclnnCat(tensors, dim, out): dim counts from the end if it is negative; tensors of shape [0] join everything; types are
// converted to that of out (aclnn_cat.h).
const Behaviour cat("cat", [](const Rank &me) {
    const World world(me, false);
    Array<float> first({1, 2, 3, 4});
    Array<int32_t> second({5, 6});
    Array<float> to(std::vector<float>(6, 0));
    const View out(to.address, ACL_FLOAT, {2, 3}, {3, 1});
    const auto tensors = [&](const Integers &shape) {
        return list_of({bare_tensor(first.address, ACL_FLOAT, {2, 2}, {1, 2}),
                        bare_tensor(nullptr, ACL_FLOAT, {0}, {1}),
                        bare_tensor(second.address, ACL_INT32, shape, {1, 1})});
    };
    const auto end = look_up<aclError(const TensorList *)>("aclDestroyTensorList");
    TensorList *list = tensors({2, 1});
    operate(world, "aclnnCat", static_cast<const TensorList *>(list), int64_t{-1}, out.tensor);
    OK(end(list));
    CHECK((to.read() == std::vector<float>{1, 3, 5, 2, 4, 6}));
    uint64_t workspace = 0;
    Executor *executor = nullptr;
    list = tensors({1, 2});
    RETURNS(161002,
            describe("aclnnCat", &workspace, &executor, static_cast<const TensorList *>(list), int64_t{1}, out.tensor));
    RETURNS(161002,
            describe("aclnnCat", &workspace, &executor, static_cast<const TensorList *>(list), int64_t{2}, out.tensor));
    OK(end(list));
});

// aclnnMul, aclnnDiv and their forms with a number and in place: tensors are broadcast to out (aclnn_mul.h, aclnn_div.h). In
// bf16 a result is that of fp32, rounded once.
const Behaviour products("products-and-quotients", [](const Rank &me) {
    const World world(me, false);
    Array<float> a({1.5F, -2, 3});
    Array<float> b({2, 0.25F});
    Array<float> to(std::vector<float>(6, 0));
    const View row(a.address, ACL_FLOAT, {3}, {1});
    const View column(b.address, ACL_FLOAT, {2, 1}, {1, 1});
    const View out(to.address, ACL_FLOAT, {2, 3}, {3, 1});
    const Tensor *const x = row.tensor;
    const Tensor *const y = column.tensor;
    operate(world, "aclnnMul", x, y, out.tensor);
    CHECK((to.read() == std::vector<float>{3, -4, 6, 0.375F, -0.5F, 0.75F}));
    operate(world, "aclnnDiv", x, y, out.tensor);
    CHECK((to.read() == std::vector<float>{0.75F, -1, 1.5F, 6, -8, 12}));
    const Number two(2.0, ACL_DOUBLE);
    const Scalar *const number = two.scalar;
    operate(world, "aclnnMuls", x, number, out.tensor);
    CHECK((to.read() == std::vector<float>{3, -4, 6, 3, -4, 6}));
    operate(world, "aclnnDivs", x, number, out.tensor);
    CHECK((to.read() == std::vector<float>{0.75F, -1, 1.5F, 0.75F, -1, 1.5F}));
    operate(world, "aclnnInplaceMuls", row.tensor, number);
    operate(world, "aclnnInplaceMul", row.tensor, x);
    CHECK((a.read() == std::vector<float>{9, 16, 36}));
    operate(world, "aclnnInplaceDivs", row.tensor, number);
    operate(world, "aclnnInplaceDiv", row.tensor, x);
    CHECK((a.read() == std::vector<float>{1, 1, 1}));
    Array<int32_t> whole({1 << 30, -3});
    operate(world, "aclnnInplaceMuls", View(whole.address, ACL_INT32, {2}, {1}).tensor,
            static_cast<const Scalar *>(Number(int32_t{4}, ACL_INT32).scalar));
    CHECK((whole.read() == std::vector<int32_t>{0, -12}));
    Array<uint16_t> brain({0x3f81}); // 1.0078125, whose square lies between two bf16
    const View only(brain.address, ACL_BF16, {1}, {1});
    operate(world, "aclnnInplaceMul", only.tensor, static_cast<const Tensor *>(only.tensor));
    CHECK(brain.read()[0] == 0x3f82);
});

// Comparisons and aclnnIsFinite give BOOL; a NaN differs from everything (aclnn_is_finite.h, aclnn_ne_scalar.h, aclnn_gt_scalar.h).
const Behaviour truths("comparisons", [](const Rank &me) {
    const World world(me, false);
    const float infinity = std::numeric_limits<float>::infinity();
    Array<float> from({1, 0, -infinity, std::nanf("")});
    Array<uint8_t> to(std::vector<uint8_t>(4, 9));
    const View self(from.address, ACL_FLOAT, {4}, {1});
    const View out(to.address, ACL_BOOL, {4}, {1});
    const Number zero(0.0, ACL_DOUBLE);
    const Tensor *const x = self.tensor;
    const auto gives = [&](const std::vector<uint8_t> &wanted) { CHECK((to.read() == wanted)); };
    operate(world, "aclnnIsFinite", x, out.tensor);
    gives({1, 1, 0, 0});
    operate(world, "aclnnNeScalar", x, static_cast<const Scalar *>(zero.scalar), out.tensor);
    gives({1, 0, 1, 1});
    operate(world, "aclnnNeTensor", x, x, out.tensor);
    gives({0, 0, 0, 1});
    operate(world, "aclnnGtScalar", x, static_cast<const Scalar *>(zero.scalar), out.tensor);
    gives({1, 0, 0, 0});
    operate(world, "aclnnLtScalar", x, static_cast<const Scalar *>(zero.scalar), out.tensor);
    gives({0, 0, 1, 0});
    uint64_t workspace = 0;
    Executor *executor = nullptr;
    RETURNS(161002, describe("aclnnIsFinite", &workspace, &executor, x, self.tensor));
    const Tensor *const found = out.tensor;
    operate(world, "aclnnBitwiseAndTensor", found, found, out.tensor);
    gives({0, 0, 1, 0});
    operate(world, "aclnnBitwiseAndScalar", found, static_cast<const Scalar *>(Number(uint8_t{0}, ACL_BOOL).scalar),
            out.tensor);
    gives({0, 0, 0, 0});
});

// aclnnAbs, aclnnCeil, aclnnMax and aclnnMin over all elements; a NaN is the largest and the smallest (aclnn_max.h, aclnn_min.h).
const Behaviour extremes("extremes", [](const Rank &me) {
    const World world(me, false);
    Array<float> from({1.25F, -2.5F, 0.5F});
    Array<float> to({0, 0, 0});
    const View self(from.address, ACL_FLOAT, {3}, {1});
    const View out(to.address, ACL_FLOAT, {3}, {1});
    const View only(to.address, ACL_FLOAT, {}, {});
    const Tensor *const x = self.tensor;
    operate(world, "aclnnAbs", x, out.tensor);
    CHECK((to.read() == std::vector<float>{1.25F, 2.5F, 0.5F}));
    operate(world, "aclnnCeil", x, out.tensor);
    CHECK((to.read() == std::vector<float>{2, -2, 1}));
    operate(world, "aclnnMax", x, only.tensor);
    CHECK(to.read()[0] == 1.25F);
    operate(world, "aclnnMin", x, only.tensor);
    CHECK(to.read()[0] == -2.5F);
    operate(world, "aclnnInplaceFillScalar", View(from.address, ACL_FLOAT, {1}, {1}, 1).tensor,
            static_cast<const Scalar *>(Number(std::nan(""), ACL_DOUBLE).scalar));
    operate(world, "aclnnMax", x, only.tensor);
    CHECK(std::isnan(to.read()[0]));
    operate(world, "aclnnMin", x, only.tensor);
    CHECK(std::isnan(to.read()[0]));
});

// aclnnMaskedSelect writes the chosen elements to the front of out, whose shape aclGetViewShape tells then (aclnn_masked_select.h;
// op-plugin reads it so, MaskedSelectKernelNpuOpApi.cpp).
const Behaviour masked("masked-select", [](const Rank &me) {
    const World world(me, false);
    Array<float> from({1, 2, 3, 4});
    Array<uint8_t> chosen({1, 0});
    Array<float> to(std::vector<float>(4, 0));
    const View self(from.address, ACL_FLOAT, {2, 2}, {2, 1});
    const View mask(chosen.address, ACL_BOOL, {2}, {1});
    const View out(to.address, ACL_FLOAT, {4}, {1});
    operate(world, "aclnnMaskedSelect", static_cast<const Tensor *>(self.tensor),
            static_cast<const Tensor *>(mask.tensor), out.tensor);
    CHECK((to.read() == std::vector<float>{1, 3, 0, 0}));
    int64_t *shape = nullptr;
    uint64_t axes = 0;
    OK(look_up<aclError(const Tensor *, int64_t **, uint64_t *)>("aclGetViewShape")(out.tensor, &shape, &axes));
    CHECK(axes == 1 && shape[0] == 2);
    delete[] shape;
});

// Operators that are not there are absent, so that clients say which one they miss.
const Behaviour absent("operator-absent", [](const Rank &) {
    void *library = dlopen("libopapi.so", RTLD_NOW);
    CHECK(library != nullptr);
    for (const char *name : {"aclnnAdd", "aclnnMatmul", "aclnnReduceSum", "aclnnSub", "aclnnEqual"}) {
        CHECK(dlsym(library, name) == nullptr);
        CHECK(dlsym(library, (std::string(name) + "GetWorkspaceSize").c_str()) == nullptr);
    }
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
    const View two(memory.address, ACL_FLOAT, {2}, {1});
    const Tensor *const x = three.tensor;
    RETURNS(161002,
            describe("aclnnMul", &workspace, &executor, x, static_cast<const Tensor *>(two.tensor), three.tensor));
    CHECK(describe("aclnnMuls", &workspace, &executor, x, static_cast<const Scalar *>(nullptr), three.tensor) != 0);
    CHECK(describe("aclnnIsFinite", &workspace, &executor, x, static_cast<Tensor *>(nullptr)) != 0);
    CHECK(executor == nullptr);
});

} // namespace

int main(int argc, char **argv) { return conform(argc, argv); }
