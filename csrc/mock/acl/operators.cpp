// The few single operators that clients need around collectives: copies between tensors of any type and stride, and
// filling with zeros or ones. Each has the vendor's two calls: the first checks and describes the work, the second queues
// it. Clients look for them in libopapi.so, which is empty and leads here. Operators that are absent are absent on purpose:
// clients say which one they miss. None of this is in csrc/cann.

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "acl/failure.h"
#include "number.h"
#include "stream.h"

namespace mock::operators {

constexpr aclError PARAMETER_INVALID = 161002;

// aclTensor: a view of device memory. Strides and offset count elements.
struct Tensor {
    aclDataType type;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    char *first = nullptr; // the element at index 0, 0, ...

    int64_t elements() const {
        int64_t count = 1;
        for (const int64_t length : shape) {
            count *= length;
        }
        return count;
    }
};

// aclOpExecutor: what the second call of an operator queues.
struct Executor {
    std::string name;
    std::function<void()> work;
};

// A number on its way between types: 64 bits with a sign hold every integer here, double every other type.
struct Number {
    bool whole;
    int64_t integer;
    double real;
};

template <class Format>
Number load(const char *place) {
    typename Format::Stored stored;
    std::memcpy(&stored, place, sizeof(stored));
    const typename Format::Value value = Format::load(stored);
    if constexpr (std::is_integral<typename Format::Value>::value) {
        return {true, static_cast<int64_t>(value), 0};
    } else {
        return {false, 0, static_cast<double>(value)};
    }
}

// A real outside of the integers' range has no right conversion; C++ must not be asked for one.
int64_t truncated(double real) {
    return real > -0x1p63 && real < 0x1p63 ? static_cast<int64_t>(real) : std::numeric_limits<int64_t>::min();
}

template <class Format>
void store(char *place, const Number &number) {
    using Value = typename Format::Value;
    Value value;
    if constexpr (std::is_same<Value, bool>::value) {
        value = number.whole ? number.integer != 0 : number.real != 0;
    } else if constexpr (std::is_integral<Value>::value) {
        value = static_cast<Value>(number.whole ? number.integer : truncated(number.real));
    } else {
        value = number.whole ? static_cast<Value>(number.integer) : static_cast<Value>(number.real);
    }
    const typename Format::Stored stored = Format::store(value);
    std::memcpy(place, &stored, sizeof(stored));
}

struct Type {
    aclDataType number;
    int64_t bytes;
    Number (*load)(const char *);
    void (*store)(char *, const Number &);
};

template <class Format>
constexpr Type type_of(aclDataType number) {
    return {number, sizeof(typename Format::Stored), load<Format>, store<Format>};
}

const Type TYPES[] = {
    type_of<Plain<float>>(ACL_FLOAT),   type_of<Half>(ACL_FLOAT16),           type_of<Brain>(ACL_BF16),
    type_of<Plain<double>>(ACL_DOUBLE), type_of<Plain<bool>>(ACL_BOOL),       type_of<Plain<int8_t>>(ACL_INT8),
    type_of<Plain<int16_t>>(ACL_INT16), type_of<Plain<int32_t>>(ACL_INT32),   type_of<Plain<int64_t>>(ACL_INT64),
    type_of<Plain<uint8_t>>(ACL_UINT8), type_of<Plain<uint16_t>>(ACL_UINT16), type_of<Plain<uint32_t>>(ACL_UINT32),
};

const Type &find_type(aclDataType number) {
    for (const Type &type : TYPES) {
        if (type.number == number) {
            return type;
        }
    }
    fail(PARAMETER_INVALID, "no tensor of the mock has data type %d", static_cast<int>(number));
}

// All of a tensor must be in one allocation of device memory.
void check_memory(const Tensor &tensor, const char *name) {
    if (tensor.elements() == 0) {
        return;
    }
    int64_t last = 0;
    for (size_t axis = 0; axis < tensor.shape.size(); axis++) {
        last += (tensor.shape[axis] - 1) * tensor.strides[axis];
    }
    const auto bytes = static_cast<uint64_t>((last + 1) * find_type(tensor.type).bytes);
    Region region;
    if (!find_memory(tensor.first, &region) || bytes > region.bytes) {
        fail(PARAMETER_INVALID, "%s: %p is not device memory of %llu bytes", name, static_cast<void *>(tensor.first),
             static_cast<unsigned long long>(bytes));
    }
}

// `source` with the shape of `target`: axes of length 1 and those that are missing in front repeat.
Tensor broadcast(const Tensor &source, const Tensor &target) {
    const size_t axes = target.shape.size();
    const size_t missing = axes - source.shape.size();
    if (source.shape.size() > axes) {
        fail(PARAMETER_INVALID, "a tensor of %zu axes does not fit into one of %zu", source.shape.size(), axes);
    }
    Tensor wide{source.type, target.shape, std::vector<int64_t>(axes, 0), source.first};
    for (size_t axis = missing; axis < axes; axis++) {
        const int64_t length = source.shape[axis - missing];
        if (length == target.shape[axis]) {
            wide.strides[axis] = source.strides[axis - missing];
        } else if (length != 1) {
            fail(PARAMETER_INVALID, "axis %zu: %lld elements do not fit into %lld", axis,
                 static_cast<long long>(length), static_cast<long long>(target.shape[axis]));
        }
    }
    return wide;
}

// Calls `body` with the addresses of each element of two tensors of one shape, in the order of their indices.
template <class Body>
void for_each_pair(const Tensor &a, const Tensor &b, Body body) {
    const int64_t a_bytes = find_type(a.type).bytes;
    const int64_t b_bytes = find_type(b.type).bytes;
    std::vector<int64_t> index(a.shape.size(), 0);
    for (int64_t left = a.elements(); left > 0; left--) {
        int64_t a_place = 0;
        int64_t b_place = 0;
        for (size_t axis = 0; axis < index.size(); axis++) {
            a_place += index[axis] * a.strides[axis];
            b_place += index[axis] * b.strides[axis];
        }
        body(a.first + a_place * a_bytes, b.first + b_place * b_bytes);
        for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == a.shape[axis];) {
            index[axis] = 0;
        }
    }
}

bool contiguous(const Tensor &tensor) {
    int64_t stride = 1;
    for (size_t axis = tensor.shape.size(); axis-- > 0; stride *= tensor.shape[axis]) {
        if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) {
            return false;
        }
    }
    return true;
}

void copy(const Tensor &target, const Tensor &source) {
    if (target.elements() == 0) {
        return; // it may have no address
    }
    const Type &to = find_type(target.type);
    const Type &from = find_type(source.type);
    if (&to == &from && contiguous(target) && contiguous(source)) {
        std::memmove(target.first, source.first, static_cast<size_t>(target.elements() * to.bytes));
        return;
    }
    for_each_pair(target, source, [&](char *out, const char *in) {
        if (&to == &from) {
            std::memcpy(out, in, static_cast<size_t>(to.bytes));
        } else {
            to.store(out, from.load(in));
        }
    });
}

void fill(const Tensor &target, int64_t value) {
    const Type &type = find_type(target.type);
    for_each_pair(target, target, [&](char *out, const char *) { type.store(out, {true, value, 0}); });
}

// The first call of an operator.
template <class Describe>
aclError describe(const char *function, uint64_t *workspace, Executor **executor, Describe body) {
    return guarded(function, [&] {
        require(workspace, "workspaceSize");
        require(executor, "executor");
        auto made = std::make_unique<Executor>();
        made->work = body();
        made->name = function;
        *workspace = 0;
        *executor = made.release();
    });
}

aclError describe_fill(const char *function, const Tensor *self, int64_t value, uint64_t *workspace,
                       Executor **executor) {
    return describe(function, workspace, executor, [&] {
        require(self, "selfRef");
        check_memory(*self, "selfRef");
        return [target = *self, value] { fill(target, value); };
    });
}

// The second call: the executor is used up.
aclError run(const char *function, Executor *executor, aclrtStream stream) {
    return guarded(function, [&] {
        require(executor, "executor");
        const std::unique_ptr<Executor> used(executor);
        usable_stream(stream)->push({function, [work = used->work](const Cancelled &) {
            work();
            return Outcome{};
        }});
    });
}

} // namespace mock::operators

using namespace mock;
using operators::Executor;
using operators::Tensor;

extern "C" {
#pragma GCC visibility push(default)

Tensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType type, const int64_t *stride,
                        int64_t offset, int32_t /*format*/, const int64_t * /*storageDims*/, uint64_t, void *data) {
    Tensor *made = nullptr;
    (void)guarded("aclCreateTensor", [&] {
        auto tensor = std::make_unique<Tensor>();
        if (viewDimsNum > 0) {
            require(viewDims, "viewDims");
            require(stride, "stride");
        }
        tensor->type = type;
        tensor->shape.assign(viewDims, viewDims + viewDimsNum);
        tensor->strides.assign(stride, stride + viewDimsNum);
        tensor->first = static_cast<char *>(data) + offset * operators::find_type(type).bytes;
        made = tensor.release();
    });
    return made;
}

aclError aclDestroyTensor(const Tensor *tensor) {
    delete tensor;
    return ACL_SUCCESS;
}

aclError aclnnInplaceCopyGetWorkspaceSize(Tensor *self, const Tensor *source, uint64_t *workspace,
                                          Executor **executor) {
    return operators::describe("aclnnInplaceCopyGetWorkspaceSize", workspace, executor, [&] {
        require(self, "selfRef");
        require(source, "src");
        operators::check_memory(*self, "selfRef");
        operators::check_memory(*source, "src");
        return [target = *self, wide = operators::broadcast(*source, *self)] { operators::copy(target, wide); };
    });
}

aclError aclnnInplaceCopy(void *, uint64_t, Executor *executor, aclrtStream stream) {
    return operators::run("aclnnInplaceCopy", executor, stream);
}

aclError aclnnInplaceOneGetWorkspaceSize(const Tensor *self, uint64_t *workspace, Executor **executor) {
    return operators::describe_fill("aclnnInplaceOneGetWorkspaceSize", self, 1, workspace, executor);
}

aclError aclnnInplaceOne(void *, uint64_t, Executor *executor, aclrtStream stream) {
    return operators::run("aclnnInplaceOne", executor, stream);
}

aclError aclnnInplaceZeroGetWorkspaceSize(const Tensor *self, uint64_t *workspace, Executor **executor) {
    return operators::describe_fill("aclnnInplaceZeroGetWorkspaceSize", self, 0, workspace, executor);
}

aclError aclnnInplaceZero(void *, uint64_t, Executor *executor, aclrtStream stream) {
    return operators::run("aclnnInplaceZero", executor, stream);
}

#pragma GCC visibility pop
} // extern "C"
