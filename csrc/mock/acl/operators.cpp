// Tensors, scalars and lists of single operators, and the operators that move data: copies between tensors of any type and
// stride, and joining. Clients look for all operators in libopapi.so, which is empty and leads here. Operators that are
// absent are absent on purpose: clients say which one they miss. None of this is in csrc/cann.

#include "operators.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace mock::operators {

namespace {

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

bool contiguous(const Tensor &tensor) {
    int64_t stride = 1;
    for (size_t axis = tensor.shape.size(); axis-- > 0; stride *= tensor.shape[axis]) {
        if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) {
            return false;
        }
    }
    return true;
}

} // namespace

const Type &find_type(aclDataType number) {
    for (const Type &type : TYPES) {
        if (type.number == number) {
            return type;
        }
    }
    fail(PARAMETER_INVALID, "no tensor of the mock has data type %d", static_cast<int>(number));
}

void check_memory(const Tensor *given, const char *name) {
    require(given, name);
    const Tensor &tensor = *given;
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
    for_each<2>({&target, &source}, [&](const auto &places) {
        char *const out = places[0];
        const char *const in = places[1];
        if (&to == &from) {
            std::memcpy(out, in, static_cast<size_t>(to.bytes));
        } else {
            to.store(out, from.load(in));
        }
    });
}

aclError run(const char *function, Executor *executor, aclrtStream stream) {
    return guarded(function, [&] {
        require(executor, "executor");
        const std::unique_ptr<Executor> used(executor);
        usable_stream(stream)->push_brief(function, [work = used->work](const Cancelled &) {
            work();
            return Outcome{};
        });
    });
}

} // namespace mock::operators

using namespace mock;
using operators::Executor;
using operators::Scalar;
using operators::Tensor;

// aclTensorList: owns its tensors.
struct TensorList {
    std::vector<std::unique_ptr<Tensor>> tensors;
};

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

// The caller ends `dims` with delete[].
aclError aclGetViewShape(const Tensor *tensor, int64_t **dims, uint64_t *count) {
    return guarded("aclGetViewShape", [&] {
        require(tensor, "tensor");
        require(dims, "viewDims");
        require(count, "viewDimsNum");
        *dims = new int64_t[tensor->shape.size()];
        std::copy(tensor->shape.begin(), tensor->shape.end(), *dims);
        *count = tensor->shape.size();
    });
}

TensorList *aclCreateTensorList(Tensor *const *tensors, uint64_t count) {
    TensorList *made = nullptr;
    (void)guarded("aclCreateTensorList", [&] {
        if (count > 0) {
            require(tensors, "value");
        }
        auto list = std::make_unique<TensorList>();
        for (uint64_t i = 0; i < count; i++) {
            require(tensors[i], "value");
        }
        for (uint64_t i = 0; i < count; i++) {
            list->tensors.emplace_back(tensors[i]);
        }
        made = list.release();
    });
    return made;
}

aclError aclDestroyTensorList(const TensorList *list) {
    delete list;
    return ACL_SUCCESS;
}

Scalar *aclCreateScalar(void *value, aclDataType type) {
    Scalar *made = nullptr;
    (void)guarded("aclCreateScalar", [&] {
        require(value, "value");
        made = new Scalar{operators::find_type(type).load(static_cast<const char *>(value))};
    });
    return made;
}

aclError aclDestroyScalar(const Scalar *scalar) {
    delete scalar;
    return ACL_SUCCESS;
}

aclError aclnnInplaceCopyGetWorkspaceSize(Tensor *self, const Tensor *source, uint64_t *workspace,
                                          Executor **executor) {
    return operators::describe("aclnnInplaceCopyGetWorkspaceSize", workspace, executor, [&] {
        operators::check_memory(self, "selfRef");
        operators::check_memory(source, "src");
        return [target = *self, wide = operators::broadcast(*source, *self)] { operators::copy(target, wide); };
    });
}

aclError aclnnInplaceCopy(void *, uint64_t, Executor *executor, aclrtStream stream) {
    return operators::run("aclnnInplaceCopy", executor, stream);
}

aclError aclnnCastGetWorkspaceSize(const Tensor *self, aclDataType type, Tensor *out, uint64_t *workspace,
                                   Executor **executor) {
    return operators::describe("aclnnCastGetWorkspaceSize", workspace, executor, [&] {
        operators::check_memory(self, "self");
        operators::check_memory(out, "out");
        if (out->type != type || out->shape != self->shape) {
            fail(operators::PARAMETER_INVALID, "out must have the type dtype and the shape of self");
        }
        return [target = *out, source = *self] { operators::copy(target, source); };
    });
}

aclError aclnnCast(void *, uint64_t, Executor *executor, aclrtStream stream) {
    return operators::run("aclnnCast", executor, stream);
}

aclError aclnnCatGetWorkspaceSize(const TensorList *tensors, int64_t dim, Tensor *out, uint64_t *workspace,
                                  Executor **executor) {
    return operators::describe("aclnnCatGetWorkspaceSize", workspace, executor, [&] {
        require(tensors, "tensors");
        operators::check_memory(out, "out");
        const auto axes = static_cast<int64_t>(out->shape.size());
        if (dim < -axes || dim >= axes) {
            fail(operators::PARAMETER_INVALID, "dim is %lld: out has %lld axes", static_cast<long long>(dim),
                 static_cast<long long>(axes));
        }
        const auto axis = static_cast<size_t>(dim < 0 ? dim + axes : dim);
        std::vector<std::pair<Tensor, Tensor>> parts; // where each goes, and what
        Tensor place = *out;
        int64_t length = 0;
        for (const auto &tensor : tensors->tensors) {
            operators::check_memory(tensor.get(), "tensors");
            if (tensor->shape == std::vector<int64_t>{0}) {
                continue; // an empty tensor of one axis goes with everything
            }
            if (tensor->shape.size() != out->shape.size()) {
                fail(operators::PARAMETER_INVALID, "a tensor of %zu axes does not join into one of %zu",
                     tensor->shape.size(), out->shape.size());
            }
            place.shape[axis] = tensor->shape[axis];
            if (place.shape != tensor->shape) {
                fail(operators::PARAMETER_INVALID, "the tensors differ in an axis other than dim");
            }
            length += tensor->shape[axis];
            parts.emplace_back(place, *tensor);
            place.first += tensor->shape[axis] * out->strides[axis] * operators::find_type(out->type).bytes;
        }
        if (length != out->shape[axis]) {
            fail(operators::PARAMETER_INVALID, "axis %zu of out has %lld elements, the tensors have %lld", axis,
                 static_cast<long long>(out->shape[axis]), static_cast<long long>(length));
        }
        return [parts] {
            for (const auto &[target, source] : parts) {
                operators::copy(target, source);
            }
        };
    });
}

aclError aclnnCat(void *, uint64_t, Executor *executor, aclrtStream stream) {
    return operators::run("aclnnCat", executor, stream);
}

#pragma GCC visibility pop
} // extern "C"
