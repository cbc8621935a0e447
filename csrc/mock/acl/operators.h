// What single operators work on: tensors as views of device memory, numbers of all types, and the vendor's two calls.

#ifndef ASCEND_MOCK_ACL_OPERATORS_H
#define ASCEND_MOCK_ACL_OPERATORS_H

#include <array>
#include <functional>
#include <memory>
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
    std::function<void()> work;
};

// A number on its way between types: 64 bits with a sign hold every integer here, double every other type.
struct Number {
    bool whole;
    int64_t integer;
    double real;
};

// aclScalar: a number of the host.
struct Scalar {
    Number number;
};

struct Type {
    aclDataType number;
    int64_t bytes;
    Number (*load)(const char *);
    void (*store)(char *, const Number &);
};

const Type &find_type(aclDataType number);

// All of a tensor must be in one allocation of device memory. `name` is that of the argument.
void check_memory(const Tensor *tensor, const char *name);

// `source` with the shape of `target`: axes of length 1 and those that are missing in front repeat.
Tensor broadcast(const Tensor &source, const Tensor &target);

// Every element of `target` gets that of `source`, converted: to nearest for floating point, towards zero for integers.
void copy(const Tensor &target, const Tensor &source);

// Calls `body` with the addresses of each element of tensors of one shape, in the order of their indices.
template <size_t Count, class Body>
void for_each(const std::array<const Tensor *, Count> &tensors, Body body) {
    const std::vector<int64_t> &shape = tensors[0]->shape;
    std::array<int64_t, Count> bytes;
    for (size_t i = 0; i < Count; i++) {
        bytes[i] = find_type(tensors[i]->type).bytes;
    }
    std::vector<int64_t> index(shape.size(), 0);
    for (int64_t left = tensors[0]->elements(); left > 0; left--) {
        std::array<char *, Count> places;
        for (size_t i = 0; i < Count; i++) {
            int64_t place = 0;
            for (size_t axis = 0; axis < index.size(); axis++) {
                place += index[axis] * tensors[i]->strides[axis];
            }
            places[i] = tensors[i]->first + place * bytes[i];
        }
        body(places);
        for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == shape[axis];) {
            index[axis] = 0;
        }
    }
}

// The first call of an operator: `body` checks and gives the work.
template <class Describe>
aclError describe(const char *function, uint64_t *workspace, Executor **executor, Describe body) {
    return guarded(function, [&] {
        require(workspace, "workspaceSize");
        require(executor, "executor");
        auto made = std::make_unique<Executor>();
        made->work = body();
        *workspace = 0;
        *executor = made.release();
    });
}

// The second call: the executor is used up.
aclError run(const char *function, Executor *executor, aclrtStream stream);

} // namespace mock::operators

#endif
