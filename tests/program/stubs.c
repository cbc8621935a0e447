// Functions that torch_npu is linked with and that no simulated NPU can serve ("aclop", "aclmdl", "Msprof", "rt"), declared
// here as clients that know them would: csrc/cann leaves them out. Descriptions hold what they are given; what would
// compute fails with a code and a sentence, never silently.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

typedef struct tensor tensor;
typedef struct data data;
typedef struct attributes attributes;

tensor *aclCreateTensorDesc(int32_t type, int count, const int64_t *shape, int32_t format);
void aclDestroyTensorDesc(const tensor *desc);
int32_t aclGetTensorDescType(const tensor *desc);
int32_t aclGetTensorDescFormat(const tensor *desc);
size_t aclGetTensorDescNumDims(const tensor *desc);
aclError aclGetTensorDescDimV2(const tensor *desc, size_t index, int64_t *size);
void aclSetTensorDescName(tensor *desc, const char *name);
aclError aclSetTensorFormat(tensor *desc, int32_t format);
aclError aclSetTensorPlaceMent(tensor *desc, int32_t placement);
aclError aclSetTensorShape(tensor *desc, int count, const int64_t *shape);
data *aclCreateDataBuffer(void *address, size_t bytes);
aclError aclDestroyDataBuffer(const data *buffer);
attributes *aclopCreateAttr(void);
void aclopDestroyAttr(const attributes *attr);
aclError aclopSetAttrBool(attributes *attr, const char *name, uint8_t value);
aclError aclopSetAttrFloat(attributes *attr, const char *name, float value);
aclError aclopCompileAndExecute(const char *type, int inputs, const tensor *const *input_desc, const data *const *input,
                                int outputs, const tensor *const *output_desc, data *const *output,
                                const attributes *attr, int32_t engine, int32_t flag, const char *path,
                                aclrtStream stream);
aclError aclmdlInitDump(void);
aclError aclmdlSetDump(const char *path);
aclError aclmdlFinalizeDump(void);
aclError aclrtGetFunctionAddr(aclrtFuncHandle function, void **cube, void **vector);
aclError aclrtMemExportToShareableHandle(void *handle, int32_t type, uint64_t flags, uint64_t *shareable);
int32_t rtKernelLaunch(const void *stub, uint32_t blocks, void *args, uint32_t size, void *sm, void *stream);
int32_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length);
int32_t MsprofReportApi(uint32_t flag, const void *api);
uint64_t MsprofSysCycleTime(void);
uint64_t MsprofGetHashId(const char *text, size_t length);

static void check(int condition, const char *what) {
    if (!condition) {
        const char *message = aclGetRecentErrMsg();
        fprintf(stderr, "wrong: %s (%s)\n", what, message == NULL ? "no message" : message);
        exit(1);
    }
}
#define CHECK(condition) check(condition, #condition)

// The call failed with this code, and the sentence names it.
static void failed(aclError code, aclError expected, const char *function) {
    const char *message = aclGetRecentErrMsg();
    CHECK(code == expected);
    CHECK(message != NULL && strstr(message, function) != NULL);
}

static void descriptions(void) {
    const int64_t shape[] = {2, 3, 5}, other[] = {7};
    int64_t size = 0;
    tensor *desc = aclCreateTensorDesc(ACL_BF16, 3, shape, 2);
    CHECK(desc != NULL && aclGetTensorDescType(desc) == ACL_BF16);
    CHECK(aclGetTensorDescFormat(desc) == 2 && aclGetTensorDescNumDims(desc) == 3);
    CHECK(aclGetTensorDescDimV2(desc, 2, &size) == ACL_SUCCESS && size == 5);
    failed(aclGetTensorDescDimV2(desc, 3, &size), ACL_ERROR_INVALID_PARAM, "aclGetTensorDescDimV2");
    CHECK(aclSetTensorShape(desc, 1, other) == ACL_SUCCESS && aclGetTensorDescNumDims(desc) == 1);
    CHECK(aclSetTensorFormat(desc, 0) == ACL_SUCCESS && aclGetTensorDescFormat(desc) == 0);
    CHECK(aclSetTensorPlaceMent(desc, 1) == ACL_SUCCESS);
    aclSetTensorDescName(desc, "x");
    aclDestroyTensorDesc(desc);
    // "aclCreateTensorDesc": no dimensions are a scalar, NULL is not a shape.
    desc = aclCreateTensorDesc(ACL_FLOAT, 0, NULL, 2);
    CHECK(desc != NULL && aclGetTensorDescNumDims(desc) == 0);
    aclDestroyTensorDesc(desc);
    CHECK(aclCreateTensorDesc(ACL_FLOAT, 1, NULL, 2) == NULL);
    failed(aclSetTensorFormat(NULL, 2), ACL_ERROR_INVALID_PARAM, "aclSetTensorFormat");
}

static void operators(void) {
    char bytes[4];
    data *buffer = aclCreateDataBuffer(bytes, sizeof(bytes));
    attributes *attr = aclopCreateAttr();
    CHECK(buffer != NULL && attr != NULL);
    CHECK(aclopSetAttrBool(attr, "keep", 1) == ACL_SUCCESS && aclopSetAttrFloat(attr, "alpha", 0.5f) == ACL_SUCCESS);
    failed(aclopSetAttrBool(attr, NULL, 1), ACL_ERROR_INVALID_PARAM, "aclopSetAttrBool");
    // Success without a result would be garbage in a tensor that nobody notices.
    failed(aclopCompileAndExecute("ZerosLike", 0, NULL, NULL, 0, NULL, NULL, attr, 0, 0, NULL, NULL),
           ACL_ERROR_INTERNAL_ERROR, "ZerosLike");
    aclopDestroyAttr(attr);
    CHECK(aclDestroyDataBuffer(buffer) == ACL_SUCCESS);
}

static void what_needs_an_npu(void) {
    uint64_t number = 0;
    uint32_t length = 0;
    void *address = NULL;
    failed(aclmdlInitDump(), ACL_ERROR_FEATURE_UNSUPPORTED, "aclmdlInitDump");
    failed(aclmdlSetDump("x.json"), ACL_ERROR_FEATURE_UNSUPPORTED, "aclmdlSetDump");
    failed(aclmdlFinalizeDump(), ACL_ERROR_FEATURE_UNSUPPORTED, "aclmdlFinalizeDump");
    failed(aclrtGetFunctionAddr(NULL, &address, &address), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetFunctionAddr");
    failed(aclrtMemExportToShareableHandle(NULL, 0, 0, &number), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
           "aclrtMemExportToShareableHandle");
    failed(rtKernelLaunch(NULL, 1, NULL, 0, NULL, NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtKernelLaunch");
    failed(rtGetC2cCtrlAddr(&number, &length), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtGetC2cCtrlAddr");
}

static void profiler(void) {
    const uint64_t start = MsprofSysCycleTime();
    CHECK(MsprofReportApi(0, NULL) == 0);
    CHECK(MsprofGetHashId("add", 3) == MsprofGetHashId("addition", 3));
    CHECK(MsprofGetHashId("add", 3) != MsprofGetHashId("sub", 3));
    CHECK(MsprofSysCycleTime() >= start);
}

int main(void) {
    descriptions();
    operators();
    what_needs_an_npu();
    profiler();
    printf("stubs.c: right\n");
    return 0;
}
