// Single operators that compute element by element, and what `print` of a tensor asks for beside them: largest and smallest
// element, and the elements that a mask selects. Real numbers are computed in double and rounded once to the type of the result.

#include <cmath>
#include <cstring>

#include "operators.h"

using namespace mock;
using operators::Executor;
using operators::Number;
using operators::Scalar;
using operators::Tensor;

namespace {

double real(const Number &number) { return number.whole ? static_cast<double>(number.integer) : number.real; }

Number product(const Number &a, const Number &b) {
    if (a.whole && b.whole) { // wraps round, as the types do
        const auto wrapped = static_cast<uint64_t>(a.integer) * static_cast<uint64_t>(b.integer);
        return {true, static_cast<int64_t>(wrapped), 0};
    }
    return {false, 0, real(a) * real(b)};
}

Number quotient(const Number &a, const Number &b) { return {false, 0, real(a) / real(b)}; }

Number truth(bool value) { return {true, value ? 1 : 0, 0}; }

bool less(const Number &a, const Number &b) { return a.whole && b.whole ? a.integer < b.integer : real(a) < real(b); }

Number differs(const Number &a, const Number &b) {
    return truth(a.whole && b.whole ? a.integer != b.integer : real(a) != real(b));
}

Number greater(const Number &a, const Number &b) { return truth(less(b, a)); }

Number smaller(const Number &a, const Number &b) { return truth(less(a, b)); }

// Of whole numbers only, among them truth values.
Number both(const Number &a, const Number &b) { return {true, a.integer & b.integer, 0}; }

Number magnitude(const Number &a) {
    return a.whole ? Number{true, a.integer < 0 ? -a.integer : a.integer, 0} : Number{false, 0, std::fabs(a.real)};
}

Number ceiling(const Number &a) { return a.whole ? a : Number{false, 0, std::ceil(a.real)}; }

Number finiteness(const Number &a) { return truth(a.whole || std::isfinite(a.real)); }

// out = change(self), element by element.
template <class Change>
aclError describe_change(const char *function, const Tensor *self, const char *name, Tensor *out, uint64_t *workspace,
                         Executor **executor, Change change) {
    return operators::describe(function, workspace, executor, [&] {
        operators::check_memory(self, name);
        operators::check_memory(out, "out");
        return [wide = operators::broadcast(*self, *out), target = *out, change] {
            const auto load = operators::find_type(wide.type).load;
            const auto store = operators::find_type(target.type).store;
            operators::for_each<2>({&target, &wide},
                                   [&](const auto &places) { store(places[0], change(load(places[1]))); });
        };
    });
}

// out = change(self, scalar), element by element.
template <class Change>
aclError describe_binary(const char *function, const Tensor *self, const char *name, const Scalar *scalar, Tensor *out,
                         uint64_t *workspace, Executor **executor, Change change) {
    if (scalar == nullptr) {
        return operators::describe(function, workspace, executor, [&]() -> std::function<void()> {
            fail(operators::PARAMETER_INVALID, "the scalar is NULL");
        });
    }
    return describe_change(function, self, name, out, workspace, executor,
                           [change, number = scalar->number](const Number &a) { return change(a, number); });
}

// out = change(self, other), element by element.
template <class Change>
aclError describe_binary(const char *function, const Tensor *self, const char *name, const Tensor *other, Tensor *out,
                         uint64_t *workspace, Executor **executor, Change change) {
    return operators::describe(function, workspace, executor, [&] {
        operators::check_memory(self, name);
        operators::check_memory(other, "other");
        operators::check_memory(out, "out");
        return [a = operators::broadcast(*self, *out), b = operators::broadcast(*other, *out), target = *out, change] {
            const auto load_a = operators::find_type(a.type).load;
            const auto load_b = operators::find_type(b.type).load;
            const auto store = operators::find_type(target.type).store;
            operators::for_each<3>({&target, &a, &b}, [&](const auto &places) {
                store(places[0], change(load_a(places[1]), load_b(places[2])));
            });
        };
    });
}

// out = the element before which `before` puts no other; a NaN if there is one.
template <class Before>
aclError describe_extreme(const char *function, const Tensor *self, Tensor *out, uint64_t *workspace,
                          Executor **executor, Before before) {
    return operators::describe(function, workspace, executor, [&] {
        operators::check_memory(self, "self");
        operators::check_memory(out, "out");
        if (self->elements() == 0 || out->elements() != 1) {
            fail(operators::PARAMETER_INVALID, "self has no elements, or out has more than one");
        }
        return [source = *self, target = *out, before] {
            const auto load = operators::find_type(source.type).load;
            Number found = load(source.first);
            operators::for_each<1>({&source}, [&](const auto &places) {
                const Number number = load(places[0]);
                if (before(number, found) || (!number.whole && std::isnan(number.real))) {
                    found = number;
                }
            });
            operators::find_type(target.type).store(target.first, found);
        };
    });
}

Number scalar_itself(const Number &, const Number &scalar) { return scalar; }

aclError describe_fill(const char *function, Tensor *self, int64_t value, uint64_t *workspace, Executor **executor) {
    return describe_change(function, self, "selfRef", self, workspace, executor,
                           [value](const Number &) { return Number{true, value, 0}; });
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

// The second call of an operator.
#define RUN(operator_)                                                                                                 \
    aclError operator_(void *, uint64_t, Executor *executor, aclrtStream stream) {                                     \
        return operators::run(#operator_, executor, stream);                                                           \
    }

// Both calls of an operator that computes `change` of self; of self and another, which is a Tensor or a Scalar; of both in place.
#define UNARY(operator_, change)                                                                                       \
    aclError operator_##GetWorkspaceSize(const Tensor *self, Tensor *out, uint64_t *workspace, Executor **executor) {  \
        return describe_change(#operator_ "GetWorkspaceSize", self, "self", out, workspace, executor, change);         \
    }                                                                                                                  \
    RUN(operator_)
#define BINARY(operator_, Other, change)                                                                               \
    aclError operator_##GetWorkspaceSize(const Tensor *self, const Other *other, Tensor *out, uint64_t *workspace,     \
                                         Executor **executor) {                                                        \
        return describe_binary(#operator_ "GetWorkspaceSize", self, "self", other, out, workspace, executor, change);  \
    }                                                                                                                  \
    RUN(operator_)
#define IN_PLACE(operator_, Other, change)                                                                             \
    aclError operator_##GetWorkspaceSize(Tensor *self, const Other *other, uint64_t *workspace, Executor **executor) { \
        return describe_binary(#operator_ "GetWorkspaceSize", self, "selfRef", other, self, workspace, executor,       \
                               change);                                                                                \
    }                                                                                                                  \
    RUN(operator_)
#define FILL(operator_, value)                                                                                         \
    aclError operator_##GetWorkspaceSize(Tensor *self, uint64_t *workspace, Executor **executor) {                     \
        return describe_fill(#operator_ "GetWorkspaceSize", self, value, workspace, executor);                         \
    }                                                                                                                  \
    RUN(operator_)

FILL(aclnnInplaceOne, 1)
FILL(aclnnInplaceZero, 0)
IN_PLACE(aclnnInplaceFillScalar, Scalar, scalar_itself)
BINARY(aclnnMul, Tensor, product)
IN_PLACE(aclnnInplaceMul, Tensor, product)
BINARY(aclnnMuls, Scalar, product)
IN_PLACE(aclnnInplaceMuls, Scalar, product)
BINARY(aclnnDiv, Tensor, quotient)
IN_PLACE(aclnnInplaceDiv, Tensor, quotient)
BINARY(aclnnDivs, Scalar, quotient)
IN_PLACE(aclnnInplaceDivs, Scalar, quotient)
BINARY(aclnnNeTensor, Tensor, differs)
BINARY(aclnnNeScalar, Scalar, differs)
BINARY(aclnnGtScalar, Scalar, greater)
BINARY(aclnnLtScalar, Scalar, smaller)
BINARY(aclnnBitwiseAndTensor, Tensor, both)
BINARY(aclnnBitwiseAndScalar, Scalar, both)
UNARY(aclnnAbs, magnitude)
UNARY(aclnnCeil, ceiling)

aclError aclnnIsFiniteGetWorkspaceSize(const Tensor *self, Tensor *out, uint64_t *workspace, Executor **executor) {
    if (out != nullptr && out->type != ACL_BOOL) {
        return operators::describe("aclnnIsFiniteGetWorkspaceSize", workspace, executor,
                                   [&]() -> std::function<void()> {
            fail(operators::PARAMETER_INVALID, "out has data type %d: it must be BOOL", static_cast<int>(out->type));
        });
    }
    return describe_change("aclnnIsFiniteGetWorkspaceSize", self, "self", out, workspace, executor, finiteness);
}
RUN(aclnnIsFinite)

aclError aclnnMaxGetWorkspaceSize(const Tensor *self, Tensor *out, uint64_t *workspace, Executor **executor) {
    return describe_extreme("aclnnMaxGetWorkspaceSize", self, out, workspace, executor,
                            [](const Number &a, const Number &b) { return less(b, a); });
}
RUN(aclnnMax)

aclError aclnnMinGetWorkspaceSize(const Tensor *self, Tensor *out, uint64_t *workspace, Executor **executor) {
    return describe_extreme("aclnnMinGetWorkspaceSize", self, out, workspace, executor, less);
}
RUN(aclnnMin)

// The shape of `out` is known when the work is done: aclGetViewShape tells it.
aclError aclnnMaskedSelectGetWorkspaceSize(const Tensor *self, const Tensor *mask, Tensor *out, uint64_t *workspace,
                                           Executor **executor) {
    return operators::describe("aclnnMaskedSelectGetWorkspaceSize", workspace, executor, [&] {
        operators::check_memory(self, "self");
        operators::check_memory(mask, "mask");
        operators::check_memory(out, "out");
        const bool selects = mask->type == ACL_BOOL || mask->type == ACL_UINT8;
        if (!selects || out->type != self->type || out->elements() < self->elements()) {
            fail(operators::PARAMETER_INVALID,
                 "mask must be BOOL or UINT8, out have the type of self and room for all of it");
        }
        return [source = *self, chosen = operators::broadcast(*mask, *self), out] {
            const auto bytes = static_cast<size_t>(operators::find_type(source.type).bytes);
            int64_t count = 0;
            operators::for_each<2>({&source, &chosen}, [&](const auto &places) {
                if (*places[1] != 0) {
                    std::memcpy(out->first + static_cast<size_t>(count++) * bytes, places[0], bytes);
                }
            });
            out->shape = {count};
            out->strides = {1};
        };
    });
}
RUN(aclnnMaskedSelect)

#undef FILL
#undef IN_PLACE
#undef BINARY
#undef UNARY
#undef RUN

#pragma GCC visibility pop
} // extern "C"
