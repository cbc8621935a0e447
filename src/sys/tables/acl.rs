// Generated from csrc/cann by the test `bindings`; do not edit.

pub const ACL_MAJOR_VERSION: u32 = 1;
pub const ACL_MINOR_VERSION: u32 = 16;
pub const ACL_PATCH_VERSION: u32 = 0;
pub const ACL_SUCCESS: u32 = 0;
pub const ACL_RT_SUCCESS: u32 = 0;
pub const ACL_ERROR_RT_PARAM_INVALID: u32 = 107000;
pub const ACL_ERROR_RT_INVALID_DEVICEID: u32 = 107001;
pub const ACL_ERROR_RT_CONTEXT_NULL: u32 = 107002;
pub const ACL_ERROR_RT_STREAM_CONTEXT: u32 = 107003;
pub const ACL_ERROR_RT_MODEL_CONTEXT: u32 = 107004;
pub const ACL_ERROR_RT_STREAM_MODEL: u32 = 107005;
pub const ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID: u32 = 107006;
pub const ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL: u32 = 107007;
pub const ACL_ERROR_RT_ADDR_UNALIGNED: u32 = 107008;
pub const ACL_ERROR_RT_FILE_OPEN: u32 = 107009;
pub const ACL_ERROR_RT_FILE_WRITE: u32 = 107010;
pub const ACL_ERROR_RT_STREAM_SUBSCRIBE: u32 = 107011;
pub const ACL_ERROR_RT_THREAD_SUBSCRIBE: u32 = 107012;
pub const ACL_ERROR_RT_STREAM_NO_CB_REG: u32 = 107015;
pub const ACL_ERROR_RT_INVALID_MEMORY_TYPE: u32 = 107016;
pub const ACL_ERROR_RT_INVALID_HANDLE: u32 = 107017;
pub const ACL_ERROR_RT_INVALID_MALLOC_TYPE: u32 = 107018;
pub const ACL_ERROR_RT_WAIT_TIMEOUT: u32 = 107019;
pub const ACL_ERROR_RT_TASK_TIMEOUT: u32 = 107020;
pub const ACL_ERROR_RT_SYSPARAMOPT_NOT_SET: u32 = 107021;
pub const ACL_ERROR_RT_DEVICE_TASK_ABORT: u32 = 107022;
pub const ACL_ERROR_RT_STREAM_ABORT: u32 = 107023;
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: u32 = 207000;
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: u32 = 207001;
pub const ACL_ERROR_RT_MEMORY_FREE: u32 = 207002;
pub const ACL_ERROR_RT_NO_DEVICE: u32 = 207004;
pub const ACL_ERROR_RT_RESOURCE_ALLOC_FAIL: u32 = 207005;
pub const ACL_ERROR_RT_NO_PERMISSION: u32 = 207006;
pub const ACL_ERROR_RT_NO_EVENT_RESOURCE: u32 = 207007;
pub const ACL_ERROR_RT_NO_STREAM_RESOURCE: u32 = 207008;
pub const ACL_ERROR_RT_NO_NOTIFY_RESOURCE: u32 = 207009;
pub const ACL_ERROR_RT_DEVICE_OOM: u32 = 207018;
pub const ACL_ERROR_RT_INTERNAL_ERROR: u32 = 507000;
pub const ACL_ERROR_RT_TS_ERROR: u32 = 507001;
pub const ACL_ERROR_RT_CONTEXT_RELEASE_ERROR: u32 = 507007;
pub const ACL_ERROR_RT_LOST_HEARTBEAT: u32 = 507010;
pub const ACL_ERROR_RT_MODEL_EXECUTE: u32 = 507011;
pub const ACL_ERROR_RT_REPORT_TIMEOUT: u32 = 507012;
pub const ACL_ERROR_RT_SYS_DMA: u32 = 507013;
pub const ACL_ERROR_RT_AICORE_TIMEOUT: u32 = 507014;
pub const ACL_ERROR_RT_AICORE_EXCEPTION: u32 = 507015;
pub const ACL_ERROR_RT_AICPU_EXCEPTION: u32 = 507018;
pub const ACL_ERROR_RT_VECTOR_CORE_TIMEOUT: u32 = 507034;
pub const ACL_ERROR_RT_VECTOR_CORE_EXCEPTION: u32 = 507035;
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: u32 = 507046;
pub const ACL_ERROR_RT_EVENT_SYNC_TIMEOUT: u32 = 507047;
pub const ACL_ERROR_RT_FFTS_PLUS_TIMEOUT: u32 = 507048;
pub const ACL_ERROR_RT_FFTS_PLUS_EXCEPTION: u32 = 507049;
pub const ACL_ERROR_RT_DEVICE_MEM_ERROR: u32 = 507053;
pub const ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR: u32 = 507054;
pub const ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR: u32 = 507055;
pub const ACL_ERROR_RT_LINK_ERROR: u32 = 507056;
pub const ACL_ERROR_RT_SUSPECT_REMOTE_ERROR: u32 = 507057;
pub const ACL_ERROR_RT_DRV_INTERNAL_ERROR: u32 = 507899;
pub const ACL_EVENT_SYNC: u32 = 1;
pub const ACL_EVENT_CAPTURE_STREAM_PROGRESS: u32 = 2;
pub const ACL_EVENT_TIME_LINE: u32 = 8;
pub const ACL_EVENT_DEVICE_USE_ONLY: u32 = 16;
pub const ACL_EVENT_EXTERNAL: u32 = 32;
pub const ACL_EVENT_IPC: u32 = 64;
pub const ACL_STREAM_FAST_LAUNCH: u32 = 1;
pub const ACL_STREAM_FAST_SYNC: u32 = 2;
pub const ACL_STREAM_PERSISTENT: u32 = 4;
pub const ACL_STREAM_HUGE: u32 = 8;
pub const ACL_STREAM_CPU_SCHEDULE: u32 = 16;
pub const ACL_STREAM_DEVICE_USE_ONLY: u32 = 32;
pub const ACL_CONTINUE_ON_FAILURE: u32 = 0;
pub const ACL_STOP_ON_FAILURE: u32 = 1;
pub const ACL_PKG_VERSION_MAX_SIZE: u32 = 128;
pub const ACL_PKG_VERSION_PARTS_MAX_SIZE: u32 = 64;
pub const ACL_PROF_ACL_API: u32 = 1;
pub const ACL_PROF_TASK_TIME: u32 = 2;
pub const ACL_PROF_AICORE_METRICS: u32 = 4;
pub const ACL_PROF_AICPU: u32 = 8;
pub const ACL_PROF_L2CACHE: u32 = 16;
pub const ACL_PROF_HCCL_TRACE: u32 = 32;
pub const ACL_PROF_MSPROFTX: u32 = 128;
pub const ACL_PROF_RUNTIME_API: u32 = 256;
pub const ACL_RT_DEVS_TOPOLOGY_HCCS: u32 = 1;
pub const ACL_RT_DEVS_TOPOLOGY_PIX: u32 = 2;
pub const ACL_RT_DEVS_TOPOLOGY_PIB: u32 = 4;
pub const ACL_RT_DEVS_TOPOLOGY_PHB: u32 = 8;
pub const ACL_RT_DEVS_TOPOLOGY_SYS: u32 = 16;
pub const ACL_RT_DEVS_TOPOLOGY_SIO: u32 = 32;
pub const ACL_RT_DEVS_TOPOLOGY_HCCS_SW: u32 = 64;
pub const ACL_RT_VMM_EXPORT_FLAG_DEFAULT: u32 = 0;
pub const ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION: u32 = 1;
pub const ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT: u32 = 0;
pub const ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION: u32 = 1;
pub const ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT: u32 = 0;
pub const ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS: u32 = 1;
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclError(pub ::core::ffi::c_int);
pub type aclFloat16 = u16;
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtContext(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtStream(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtEvent(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtBinary(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtBinHandle(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtFuncHandle(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtArgsHandle(pub *mut ::core::ffi::c_void);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtParamHandle(pub *mut ::core::ffi::c_void);
pub type aclrtDrvMemHandle = *mut ::core::ffi::c_void;
pub const ACL_ERROR_NONE: ::core::ffi::c_int = 0;
pub const ACL_ERROR_INVALID_PARAM: ::core::ffi::c_int = 100000;
pub const ACL_ERROR_UNINITIALIZE: ::core::ffi::c_int = 100001;
pub const ACL_ERROR_REPEAT_INITIALIZE: ::core::ffi::c_int = 100002;
pub const ACL_ERROR_INVALID_FILE: ::core::ffi::c_int = 100003;
pub const ACL_ERROR_REPEAT_FINALIZE: ::core::ffi::c_int = 100037;
pub const ACL_ERROR_COMPILING_STUB_MODE: ::core::ffi::c_int = 100039;
pub const ACL_ERROR_BAD_ALLOC: ::core::ffi::c_int = 200000;
pub const ACL_ERROR_API_NOT_SUPPORT: ::core::ffi::c_int = 200001;
pub const ACL_ERROR_INVALID_DEVICE: ::core::ffi::c_int = 200002;
pub const ACL_ERROR_INVALID_RESOURCE_HANDLE: ::core::ffi::c_int = 200005;
pub const ACL_ERROR_FEATURE_UNSUPPORTED: ::core::ffi::c_int = 200006;
pub const ACL_ERROR_STORAGE_OVER_LIMIT: ::core::ffi::c_int = 300000;
pub const ACL_ERROR_INTERNAL_ERROR: ::core::ffi::c_int = 500000;
pub const ACL_ERROR_FAILURE: ::core::ffi::c_int = 500001;
pub const ACL_ERROR_GE_FAILURE: ::core::ffi::c_int = 500002;
pub const ACL_ERROR_RT_FAILURE: ::core::ffi::c_int = 500003;
pub const ACL_ERROR_DRV_FAILURE: ::core::ffi::c_int = 500004;
impl aclDataType {
    pub const ACL_DT_UNDEFINED: aclDataType = aclDataType(-1);
    pub const ACL_FLOAT: aclDataType = aclDataType(0);
    pub const ACL_FLOAT16: aclDataType = aclDataType(1);
    pub const ACL_INT8: aclDataType = aclDataType(2);
    pub const ACL_INT32: aclDataType = aclDataType(3);
    pub const ACL_UINT8: aclDataType = aclDataType(4);
    pub const ACL_INT16: aclDataType = aclDataType(6);
    pub const ACL_UINT16: aclDataType = aclDataType(7);
    pub const ACL_UINT32: aclDataType = aclDataType(8);
    pub const ACL_INT64: aclDataType = aclDataType(9);
    pub const ACL_UINT64: aclDataType = aclDataType(10);
    pub const ACL_DOUBLE: aclDataType = aclDataType(11);
    pub const ACL_BOOL: aclDataType = aclDataType(12);
    pub const ACL_BF16: aclDataType = aclDataType(27);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclDataType(pub ::core::ffi::c_int);
impl aclrtMemcpyKind {
    pub const ACL_MEMCPY_HOST_TO_HOST: aclrtMemcpyKind = aclrtMemcpyKind(0);
    pub const ACL_MEMCPY_HOST_TO_DEVICE: aclrtMemcpyKind = aclrtMemcpyKind(1);
    pub const ACL_MEMCPY_DEVICE_TO_HOST: aclrtMemcpyKind = aclrtMemcpyKind(2);
    pub const ACL_MEMCPY_DEVICE_TO_DEVICE: aclrtMemcpyKind = aclrtMemcpyKind(3);
    pub const ACL_MEMCPY_DEFAULT: aclrtMemcpyKind = aclrtMemcpyKind(4);
    pub const ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: aclrtMemcpyKind = aclrtMemcpyKind(5);
    pub const ACL_MEMCPY_INNER_DEVICE_TO_DEVICE: aclrtMemcpyKind = aclrtMemcpyKind(6);
    pub const ACL_MEMCPY_INTER_DEVICE_TO_DEVICE: aclrtMemcpyKind = aclrtMemcpyKind(7);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemcpyKind(pub ::core::ffi::c_uint);
impl aclrtMemMallocPolicy {
    pub const ACL_MEM_MALLOC_HUGE_FIRST: aclrtMemMallocPolicy = aclrtMemMallocPolicy(0);
    pub const ACL_MEM_MALLOC_HUGE_ONLY: aclrtMemMallocPolicy = aclrtMemMallocPolicy(1);
    pub const ACL_MEM_MALLOC_NORMAL_ONLY: aclrtMemMallocPolicy = aclrtMemMallocPolicy(2);
    pub const ACL_MEM_MALLOC_HUGE_FIRST_P2P: aclrtMemMallocPolicy = aclrtMemMallocPolicy(
        3,
    );
    pub const ACL_MEM_MALLOC_HUGE_ONLY_P2P: aclrtMemMallocPolicy = aclrtMemMallocPolicy(
        4,
    );
    pub const ACL_MEM_MALLOC_NORMAL_ONLY_P2P: aclrtMemMallocPolicy = aclrtMemMallocPolicy(
        5,
    );
    pub const ACL_MEM_MALLOC_HUGE1G_ONLY: aclrtMemMallocPolicy = aclrtMemMallocPolicy(6);
    pub const ACL_MEM_MALLOC_HUGE1G_ONLY_P2P: aclrtMemMallocPolicy = aclrtMemMallocPolicy(
        7,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemMallocPolicy(pub ::core::ffi::c_uint);
impl aclrtHostRegisterType {
    pub const ACL_HOST_REGISTER_MAPPED: aclrtHostRegisterType = aclrtHostRegisterType(0);
    pub const ACL_HOST_REGISTER_IOMEMORY: aclrtHostRegisterType = aclrtHostRegisterType(
        4,
    );
    pub const ACL_HOST_REGISTER_READONLY: aclrtHostRegisterType = aclrtHostRegisterType(
        8,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtHostRegisterType(pub ::core::ffi::c_uint);
impl aclrtDeviceStatus {
    pub const ACL_RT_DEVICE_STATUS_NORMAL: aclrtDeviceStatus = aclrtDeviceStatus(0);
    pub const ACL_RT_DEVICE_STATUS_ABNORMAL: aclrtDeviceStatus = aclrtDeviceStatus(1);
    pub const ACL_RT_DEVICE_STATUS_END: aclrtDeviceStatus = aclrtDeviceStatus(65535);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtDeviceStatus(pub ::core::ffi::c_uint);
impl aclrtMemAttr {
    pub const ACL_DDR_MEM: aclrtMemAttr = aclrtMemAttr(0);
    pub const ACL_HBM_MEM: aclrtMemAttr = aclrtMemAttr(1);
    pub const ACL_DDR_MEM_HUGE: aclrtMemAttr = aclrtMemAttr(2);
    pub const ACL_DDR_MEM_NORMAL: aclrtMemAttr = aclrtMemAttr(3);
    pub const ACL_HBM_MEM_HUGE: aclrtMemAttr = aclrtMemAttr(4);
    pub const ACL_HBM_MEM_NORMAL: aclrtMemAttr = aclrtMemAttr(5);
    pub const ACL_DDR_MEM_P2P_HUGE: aclrtMemAttr = aclrtMemAttr(6);
    pub const ACL_DDR_MEM_P2P_NORMAL: aclrtMemAttr = aclrtMemAttr(7);
    pub const ACL_HBM_MEM_P2P_HUGE: aclrtMemAttr = aclrtMemAttr(8);
    pub const ACL_HBM_MEM_P2P_NORMAL: aclrtMemAttr = aclrtMemAttr(9);
    pub const ACL_HBM_MEM_HUGE1G: aclrtMemAttr = aclrtMemAttr(10);
    pub const ACL_HBM_MEM_P2P_HUGE1G: aclrtMemAttr = aclrtMemAttr(11);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemAttr(pub ::core::ffi::c_uint);
impl aclrtMemHandleType {
    pub const ACL_MEM_HANDLE_TYPE_NONE: aclrtMemHandleType = aclrtMemHandleType(0);
    pub const ACL_MEM_HANDLE_TYPE_POSIX: aclrtMemHandleType = aclrtMemHandleType(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemHandleType(pub ::core::ffi::c_uint);
impl aclrtMemAllocationType {
    pub const ACL_MEM_ALLOCATION_TYPE_PINNED: aclrtMemAllocationType = aclrtMemAllocationType(
        0,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemAllocationType(pub ::core::ffi::c_uint);
impl aclrtMemLocationType {
    pub const ACL_MEM_LOCATION_TYPE_HOST: aclrtMemLocationType = aclrtMemLocationType(0);
    pub const ACL_MEM_LOCATION_TYPE_DEVICE: aclrtMemLocationType = aclrtMemLocationType(
        1,
    );
    pub const ACL_MEM_LOCATION_TYPE_UNREGISTERED: aclrtMemLocationType = aclrtMemLocationType(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemLocationType(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemLocation {
    pub id: u32,
    pub type_: aclrtMemLocationType,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of aclrtMemLocation"][::core::mem::size_of::<aclrtMemLocation>() - 8usize];
    [
        "Alignment of aclrtMemLocation",
    ][::core::mem::align_of::<aclrtMemLocation>() - 4usize];
    [
        "Offset of field: aclrtMemLocation::id",
    ][::core::mem::offset_of!(aclrtMemLocation, id) - 0usize];
    [
        "Offset of field: aclrtMemLocation::type_",
    ][::core::mem::offset_of!(aclrtMemLocation, type_) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtPhysicalMemProp {
    pub handleType: aclrtMemHandleType,
    pub allocationType: aclrtMemAllocationType,
    pub memAttr: aclrtMemAttr,
    pub location: aclrtMemLocation,
    pub reserve: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtPhysicalMemProp",
    ][::core::mem::size_of::<aclrtPhysicalMemProp>() - 32usize];
    [
        "Alignment of aclrtPhysicalMemProp",
    ][::core::mem::align_of::<aclrtPhysicalMemProp>() - 8usize];
    [
        "Offset of field: aclrtPhysicalMemProp::handleType",
    ][::core::mem::offset_of!(aclrtPhysicalMemProp, handleType) - 0usize];
    [
        "Offset of field: aclrtPhysicalMemProp::allocationType",
    ][::core::mem::offset_of!(aclrtPhysicalMemProp, allocationType) - 4usize];
    [
        "Offset of field: aclrtPhysicalMemProp::memAttr",
    ][::core::mem::offset_of!(aclrtPhysicalMemProp, memAttr) - 8usize];
    [
        "Offset of field: aclrtPhysicalMemProp::location",
    ][::core::mem::offset_of!(aclrtPhysicalMemProp, location) - 12usize];
    [
        "Offset of field: aclrtPhysicalMemProp::reserve",
    ][::core::mem::offset_of!(aclrtPhysicalMemProp, reserve) - 24usize];
};
impl aclrtMemGranularityOptions {
    pub const ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM: aclrtMemGranularityOptions = aclrtMemGranularityOptions(
        0,
    );
    pub const ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED: aclrtMemGranularityOptions = aclrtMemGranularityOptions(
        1,
    );
    pub const ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF: aclrtMemGranularityOptions = aclrtMemGranularityOptions(
        65535,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemGranularityOptions(pub ::core::ffi::c_uint);
impl aclrtMemSharedHandleType {
    pub const ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT: aclrtMemSharedHandleType = aclrtMemSharedHandleType(
        1,
    );
    pub const ACL_MEM_SHARE_HANDLE_TYPE_FABRIC: aclrtMemSharedHandleType = aclrtMemSharedHandleType(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemSharedHandleType(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtMemFabricHandle {
    pub data: [u8; 128usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtMemFabricHandle",
    ][::core::mem::size_of::<aclrtMemFabricHandle>() - 128usize];
    [
        "Alignment of aclrtMemFabricHandle",
    ][::core::mem::align_of::<aclrtMemFabricHandle>() - 1usize];
    [
        "Offset of field: aclrtMemFabricHandle::data",
    ][::core::mem::offset_of!(aclrtMemFabricHandle, data) - 0usize];
};
impl aclrtReduceKind {
    pub const ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM: aclrtReduceKind = aclrtReduceKind(10);
    pub const ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX: aclrtReduceKind = aclrtReduceKind(11);
    pub const ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN: aclrtReduceKind = aclrtReduceKind(12);
    pub const ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL: aclrtReduceKind = aclrtReduceKind(13);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtReduceKind(pub ::core::ffi::c_uint);
impl aclrtRunMode {
    pub const ACL_DEVICE: aclrtRunMode = aclrtRunMode(0);
    pub const ACL_HOST: aclrtRunMode = aclrtRunMode(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtRunMode(pub ::core::ffi::c_uint);
impl aclrtFloatOverflowMode {
    pub const ACL_RT_OVERFLOW_MODE_SATURATION: aclrtFloatOverflowMode = aclrtFloatOverflowMode(
        0,
    );
    pub const ACL_RT_OVERFLOW_MODE_INFNAN: aclrtFloatOverflowMode = aclrtFloatOverflowMode(
        1,
    );
    pub const ACL_RT_OVERFLOW_MODE_UNDEF: aclrtFloatOverflowMode = aclrtFloatOverflowMode(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtFloatOverflowMode(pub ::core::ffi::c_uint);
impl aclrtLastErrLevel {
    pub const ACL_RT_THREAD_LEVEL: aclrtLastErrLevel = aclrtLastErrLevel(0);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtLastErrLevel(pub ::core::ffi::c_uint);
impl aclrtTsId {
    pub const ACL_TS_ID_AICORE: aclrtTsId = aclrtTsId(0);
    pub const ACL_TS_ID_AIVECTOR: aclrtTsId = aclrtTsId(1);
    pub const ACL_TS_ID_RESERVED: aclrtTsId = aclrtTsId(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtTsId(pub ::core::ffi::c_uint);
impl aclSysParamOpt {
    pub const ACL_OPT_DETERMINISTIC: aclSysParamOpt = aclSysParamOpt(0);
    pub const ACL_OPT_ENABLE_DEBUG_KERNEL: aclSysParamOpt = aclSysParamOpt(1);
    pub const ACL_OPT_STRONG_CONSISTENCY: aclSysParamOpt = aclSysParamOpt(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclSysParamOpt(pub ::core::ffi::c_uint);
impl aclCompileOpt {
    pub const ACL_PRECISION_MODE: aclCompileOpt = aclCompileOpt(0);
    pub const ACL_AICORE_NUM: aclCompileOpt = aclCompileOpt(1);
    pub const ACL_AUTO_TUNE_MODE: aclCompileOpt = aclCompileOpt(2);
    pub const ACL_OP_SELECT_IMPL_MODE: aclCompileOpt = aclCompileOpt(3);
    pub const ACL_OPTYPELIST_FOR_IMPLMODE: aclCompileOpt = aclCompileOpt(4);
    pub const ACL_OP_DEBUG_LEVEL: aclCompileOpt = aclCompileOpt(5);
    pub const ACL_DEBUG_DIR: aclCompileOpt = aclCompileOpt(6);
    pub const ACL_OP_COMPILER_CACHE_MODE: aclCompileOpt = aclCompileOpt(7);
    pub const ACL_OP_COMPILER_CACHE_DIR: aclCompileOpt = aclCompileOpt(8);
    pub const ACL_OP_PERFORMANCE_MODE: aclCompileOpt = aclCompileOpt(9);
    pub const ACL_OP_JIT_COMPILE: aclCompileOpt = aclCompileOpt(10);
    pub const ACL_OP_DETERMINISTIC: aclCompileOpt = aclCompileOpt(11);
    pub const ACL_CUSTOMIZE_DTYPES: aclCompileOpt = aclCompileOpt(12);
    pub const ACL_OP_PRECISION_MODE: aclCompileOpt = aclCompileOpt(13);
    pub const ACL_ALLOW_HF32: aclCompileOpt = aclCompileOpt(14);
    pub const ACL_PRECISION_MODE_V2: aclCompileOpt = aclCompileOpt(15);
    pub const ACL_OP_DEBUG_OPTION: aclCompileOpt = aclCompileOpt(16);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclCompileOpt(pub ::core::ffi::c_uint);
impl aclCannAttr {
    pub const ACL_CANN_ATTR_UNDEFINED: aclCannAttr = aclCannAttr(-1);
    pub const ACL_CANN_ATTR_INF_NAN: aclCannAttr = aclCannAttr(0);
    pub const ACL_CANN_ATTR_BF16: aclCannAttr = aclCannAttr(1);
    pub const ACL_CANN_ATTR_JIT_COMPILE: aclCannAttr = aclCannAttr(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclCannAttr(pub ::core::ffi::c_int);
impl aclLogLevel {
    pub const ACL_DEBUG: aclLogLevel = aclLogLevel(0);
    pub const ACL_INFO: aclLogLevel = aclLogLevel(1);
    pub const ACL_WARNING: aclLogLevel = aclLogLevel(2);
    pub const ACL_ERROR: aclLogLevel = aclLogLevel(3);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclLogLevel(pub ::core::ffi::c_uint);
impl aclrtEventStatus {
    pub const ACL_EVENT_STATUS_COMPLETE: aclrtEventStatus = aclrtEventStatus(0);
    pub const ACL_EVENT_STATUS_NOT_READY: aclrtEventStatus = aclrtEventStatus(1);
    pub const ACL_EVENT_STATUS_RESERVED: aclrtEventStatus = aclrtEventStatus(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtEventStatus(pub ::core::ffi::c_uint);
impl aclrtEventRecordedStatus {
    pub const ACL_EVENT_RECORDED_STATUS_NOT_READY: aclrtEventRecordedStatus = aclrtEventRecordedStatus(
        0,
    );
    pub const ACL_EVENT_RECORDED_STATUS_COMPLETE: aclrtEventRecordedStatus = aclrtEventRecordedStatus(
        1,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtEventRecordedStatus(pub ::core::ffi::c_uint);
impl aclrtEventWaitStatus {
    pub const ACL_EVENT_WAIT_STATUS_COMPLETE: aclrtEventWaitStatus = aclrtEventWaitStatus(
        0,
    );
    pub const ACL_EVENT_WAIT_STATUS_NOT_READY: aclrtEventWaitStatus = aclrtEventWaitStatus(
        1,
    );
    pub const ACL_EVENT_WAIT_STATUS_RESERVED: aclrtEventWaitStatus = aclrtEventWaitStatus(
        65535,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtEventWaitStatus(pub ::core::ffi::c_uint);
impl aclrtStreamStatus {
    pub const ACL_STREAM_STATUS_COMPLETE: aclrtStreamStatus = aclrtStreamStatus(0);
    pub const ACL_STREAM_STATUS_NOT_READY: aclrtStreamStatus = aclrtStreamStatus(1);
    pub const ACL_STREAM_STATUS_RESERVED: aclrtStreamStatus = aclrtStreamStatus(65535);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtStreamStatus(pub ::core::ffi::c_uint);
impl aclrtCallbackBlockType {
    pub const ACL_CALLBACK_NO_BLOCK: aclrtCallbackBlockType = aclrtCallbackBlockType(0);
    pub const ACL_CALLBACK_BLOCK: aclrtCallbackBlockType = aclrtCallbackBlockType(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtCallbackBlockType(pub ::core::ffi::c_uint);
pub type aclrtCallback = ::core::option::Option<
    unsafe extern "C" fn(userData: *mut ::core::ffi::c_void),
>;
pub type aclrtHostFunc = ::core::option::Option<
    unsafe extern "C" fn(args: *mut ::core::ffi::c_void),
>;
#[repr(C)]
#[derive(Debug)]
pub struct rtExceptionInfo {
    _unused: [u8; 0],
}
pub type aclrtExceptionInfo = rtExceptionInfo;
pub type aclrtExceptionInfoCallback = ::core::option::Option<
    unsafe extern "C" fn(exceptionInfo: *mut aclrtExceptionInfo),
>;
impl aclDeviceInfo {
    pub const ACL_DEVICE_INFO_UNDEFINED: aclDeviceInfo = aclDeviceInfo(-1);
    pub const ACL_DEVICE_INFO_AI_CORE_NUM: aclDeviceInfo = aclDeviceInfo(0);
    pub const ACL_DEVICE_INFO_VECTOR_CORE_NUM: aclDeviceInfo = aclDeviceInfo(1);
    pub const ACL_DEVICE_INFO_L2_SIZE: aclDeviceInfo = aclDeviceInfo(2);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclDeviceInfo(pub ::core::ffi::c_int);
impl aclrtDevAttr {
    pub const ACL_DEV_ATTR_AICORE_CORE_NUM: aclrtDevAttr = aclrtDevAttr(101);
    pub const ACL_DEV_ATTR_CUBE_CORE_NUM: aclrtDevAttr = aclrtDevAttr(102);
    pub const ACL_DEV_ATTR_VECTOR_CORE_NUM: aclrtDevAttr = aclrtDevAttr(201);
    pub const ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: aclrtDevAttr = aclrtDevAttr(204);
    pub const ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: aclrtDevAttr = aclrtDevAttr(301);
    pub const ACL_DEV_ATTR_L2_CACHE_SIZE: aclrtDevAttr = aclrtDevAttr(302);
    pub const ACL_DEV_ATTR_SUPER_POD_ID: aclrtDevAttr = aclrtDevAttr(405);
    pub const ACL_DEV_ATTR_NPU_ARCH: aclrtDevAttr = aclrtDevAttr(601);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtDevAttr(pub ::core::ffi::c_uint);
impl aclCANNPackageName {
    pub const ACL_PKG_NAME_CANN: aclCANNPackageName = aclCANNPackageName(0);
    pub const ACL_PKG_NAME_RUNTIME: aclCANNPackageName = aclCANNPackageName(1);
    pub const ACL_PKG_NAME_COMPILER: aclCANNPackageName = aclCANNPackageName(2);
    pub const ACL_PKG_NAME_HCCL: aclCANNPackageName = aclCANNPackageName(3);
    pub const ACL_PKG_NAME_TOOLKIT: aclCANNPackageName = aclCANNPackageName(4);
    pub const ACL_PKG_NAME_OPP: aclCANNPackageName = aclCANNPackageName(5);
    pub const ACL_PKG_NAME_OPP_KERNEL: aclCANNPackageName = aclCANNPackageName(6);
    pub const ACL_PKG_NAME_DRIVER: aclCANNPackageName = aclCANNPackageName(7);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclCANNPackageName(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclCANNPackageVersion {
    pub version: [::core::ffi::c_char; 128usize],
    pub majorVersion: [::core::ffi::c_char; 64usize],
    pub minorVersion: [::core::ffi::c_char; 64usize],
    pub releaseVersion: [::core::ffi::c_char; 64usize],
    pub patchVersion: [::core::ffi::c_char; 64usize],
    pub reserved: [::core::ffi::c_char; 128usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclCANNPackageVersion",
    ][::core::mem::size_of::<aclCANNPackageVersion>() - 512usize];
    [
        "Alignment of aclCANNPackageVersion",
    ][::core::mem::align_of::<aclCANNPackageVersion>() - 1usize];
    [
        "Offset of field: aclCANNPackageVersion::version",
    ][::core::mem::offset_of!(aclCANNPackageVersion, version) - 0usize];
    [
        "Offset of field: aclCANNPackageVersion::majorVersion",
    ][::core::mem::offset_of!(aclCANNPackageVersion, majorVersion) - 128usize];
    [
        "Offset of field: aclCANNPackageVersion::minorVersion",
    ][::core::mem::offset_of!(aclCANNPackageVersion, minorVersion) - 192usize];
    [
        "Offset of field: aclCANNPackageVersion::releaseVersion",
    ][::core::mem::offset_of!(aclCANNPackageVersion, releaseVersion) - 256usize];
    [
        "Offset of field: aclCANNPackageVersion::patchVersion",
    ][::core::mem::offset_of!(aclCANNPackageVersion, patchVersion) - 320usize];
    [
        "Offset of field: aclCANNPackageVersion::reserved",
    ][::core::mem::offset_of!(aclCANNPackageVersion, reserved) - 384usize];
};
impl aclrtBinaryLoadOptionType {
    pub const ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD: aclrtBinaryLoadOptionType = aclrtBinaryLoadOptionType(
        1,
    );
    pub const ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC: aclrtBinaryLoadOptionType = aclrtBinaryLoadOptionType(
        2,
    );
    pub const ACL_RT_BINARY_LOAD_OPT_MAGIC: aclrtBinaryLoadOptionType = aclrtBinaryLoadOptionType(
        2,
    );
    pub const ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE: aclrtBinaryLoadOptionType = aclrtBinaryLoadOptionType(
        3,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtBinaryLoadOptionType(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Copy, Clone)]
pub union aclrtBinaryLoadOptionValue {
    pub isLazyLoad: u32,
    pub magic: u32,
    pub cpuKernelMode: i32,
    pub rsv: [u32; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtBinaryLoadOptionValue",
    ][::core::mem::size_of::<aclrtBinaryLoadOptionValue>() - 16usize];
    [
        "Alignment of aclrtBinaryLoadOptionValue",
    ][::core::mem::align_of::<aclrtBinaryLoadOptionValue>() - 4usize];
    [
        "Offset of field: aclrtBinaryLoadOptionValue::isLazyLoad",
    ][::core::mem::offset_of!(aclrtBinaryLoadOptionValue, isLazyLoad) - 0usize];
    [
        "Offset of field: aclrtBinaryLoadOptionValue::magic",
    ][::core::mem::offset_of!(aclrtBinaryLoadOptionValue, magic) - 0usize];
    [
        "Offset of field: aclrtBinaryLoadOptionValue::cpuKernelMode",
    ][::core::mem::offset_of!(aclrtBinaryLoadOptionValue, cpuKernelMode) - 0usize];
    [
        "Offset of field: aclrtBinaryLoadOptionValue::rsv",
    ][::core::mem::offset_of!(aclrtBinaryLoadOptionValue, rsv) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct aclrtBinaryLoadOption {
    pub type_: aclrtBinaryLoadOptionType,
    pub value: aclrtBinaryLoadOptionValue,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtBinaryLoadOption",
    ][::core::mem::size_of::<aclrtBinaryLoadOption>() - 20usize];
    [
        "Alignment of aclrtBinaryLoadOption",
    ][::core::mem::align_of::<aclrtBinaryLoadOption>() - 4usize];
    [
        "Offset of field: aclrtBinaryLoadOption::type_",
    ][::core::mem::offset_of!(aclrtBinaryLoadOption, type_) - 0usize];
    [
        "Offset of field: aclrtBinaryLoadOption::value",
    ][::core::mem::offset_of!(aclrtBinaryLoadOption, value) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtBinaryLoadOptions {
    pub options: *mut aclrtBinaryLoadOption,
    pub numOpt: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtBinaryLoadOptions",
    ][::core::mem::size_of::<aclrtBinaryLoadOptions>() - 16usize];
    [
        "Alignment of aclrtBinaryLoadOptions",
    ][::core::mem::align_of::<aclrtBinaryLoadOptions>() - 8usize];
    [
        "Offset of field: aclrtBinaryLoadOptions::options",
    ][::core::mem::offset_of!(aclrtBinaryLoadOptions, options) - 0usize];
    [
        "Offset of field: aclrtBinaryLoadOptions::numOpt",
    ][::core::mem::offset_of!(aclrtBinaryLoadOptions, numOpt) - 8usize];
};
impl aclrtLaunchKernelAttrId {
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        1,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        2,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        3,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        4,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        5,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        6,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        7,
    );
    pub const ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US: aclrtLaunchKernelAttrId = aclrtLaunchKernelAttrId(
        8,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtLaunchKernelAttrId(pub ::core::ffi::c_uint);
impl aclrtEngineType {
    pub const ACL_RT_ENGINE_TYPE_AIC: aclrtEngineType = aclrtEngineType(0);
    pub const ACL_RT_ENGINE_TYPE_AIV: aclrtEngineType = aclrtEngineType(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtEngineType(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtTimeoutUs {
    pub timeoutLow: u32,
    pub timeoutHigh: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of aclrtTimeoutUs"][::core::mem::size_of::<aclrtTimeoutUs>() - 8usize];
    ["Alignment of aclrtTimeoutUs"][::core::mem::align_of::<aclrtTimeoutUs>() - 4usize];
    [
        "Offset of field: aclrtTimeoutUs::timeoutLow",
    ][::core::mem::offset_of!(aclrtTimeoutUs, timeoutLow) - 0usize];
    [
        "Offset of field: aclrtTimeoutUs::timeoutHigh",
    ][::core::mem::offset_of!(aclrtTimeoutUs, timeoutHigh) - 4usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union aclrtLaunchKernelAttrValue {
    pub schemMode: u8,
    pub dynUBufSize: u32,
    pub engineType: aclrtEngineType,
    pub blockDimOffset: u32,
    pub isBlockTaskPrefetch: u8,
    pub isDataDump: u8,
    pub timeout: u16,
    pub timeoutUs: aclrtTimeoutUs,
    pub rsv: [u32; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtLaunchKernelAttrValue",
    ][::core::mem::size_of::<aclrtLaunchKernelAttrValue>() - 16usize];
    [
        "Alignment of aclrtLaunchKernelAttrValue",
    ][::core::mem::align_of::<aclrtLaunchKernelAttrValue>() - 4usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::schemMode",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, schemMode) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::dynUBufSize",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, dynUBufSize) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::engineType",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, engineType) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::blockDimOffset",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, blockDimOffset) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::isBlockTaskPrefetch",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, isBlockTaskPrefetch) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::isDataDump",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, isDataDump) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::timeout",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, timeout) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::timeoutUs",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, timeoutUs) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttrValue::rsv",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttrValue, rsv) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct aclrtLaunchKernelAttr {
    pub id: aclrtLaunchKernelAttrId,
    pub value: aclrtLaunchKernelAttrValue,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtLaunchKernelAttr",
    ][::core::mem::size_of::<aclrtLaunchKernelAttr>() - 20usize];
    [
        "Alignment of aclrtLaunchKernelAttr",
    ][::core::mem::align_of::<aclrtLaunchKernelAttr>() - 4usize];
    [
        "Offset of field: aclrtLaunchKernelAttr::id",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttr, id) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelAttr::value",
    ][::core::mem::offset_of!(aclrtLaunchKernelAttr, value) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtLaunchKernelCfg {
    pub attrs: *mut aclrtLaunchKernelAttr,
    pub numAttrs: usize,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtLaunchKernelCfg",
    ][::core::mem::size_of::<aclrtLaunchKernelCfg>() - 16usize];
    [
        "Alignment of aclrtLaunchKernelCfg",
    ][::core::mem::align_of::<aclrtLaunchKernelCfg>() - 8usize];
    [
        "Offset of field: aclrtLaunchKernelCfg::attrs",
    ][::core::mem::offset_of!(aclrtLaunchKernelCfg, attrs) - 0usize];
    [
        "Offset of field: aclrtLaunchKernelCfg::numAttrs",
    ][::core::mem::offset_of!(aclrtLaunchKernelCfg, numAttrs) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclrtPlaceHolderInfo {
    pub addrOffset: u32,
    pub dataOffset: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of aclrtPlaceHolderInfo",
    ][::core::mem::size_of::<aclrtPlaceHolderInfo>() - 8usize];
    [
        "Alignment of aclrtPlaceHolderInfo",
    ][::core::mem::align_of::<aclrtPlaceHolderInfo>() - 4usize];
    [
        "Offset of field: aclrtPlaceHolderInfo::addrOffset",
    ][::core::mem::offset_of!(aclrtPlaceHolderInfo, addrOffset) - 0usize];
    [
        "Offset of field: aclrtPlaceHolderInfo::dataOffset",
    ][::core::mem::offset_of!(aclrtPlaceHolderInfo, dataOffset) - 4usize];
};
impl aclprofAicoreMetrics {
    pub const ACL_AICORE_ARITHMETIC_UTILIZATION: aclprofAicoreMetrics = aclprofAicoreMetrics(
        0,
    );
    pub const ACL_AICORE_PIPE_UTILIZATION: aclprofAicoreMetrics = aclprofAicoreMetrics(
        1,
    );
    pub const ACL_AICORE_MEMORY_BANDWIDTH: aclprofAicoreMetrics = aclprofAicoreMetrics(
        2,
    );
    pub const ACL_AICORE_L0B_AND_WIDTH: aclprofAicoreMetrics = aclprofAicoreMetrics(3);
    pub const ACL_AICORE_RESOURCE_CONFLICT_RATIO: aclprofAicoreMetrics = aclprofAicoreMetrics(
        4,
    );
    pub const ACL_AICORE_MEMORY_UB: aclprofAicoreMetrics = aclprofAicoreMetrics(5);
    pub const ACL_AICORE_L2_CACHE: aclprofAicoreMetrics = aclprofAicoreMetrics(6);
    pub const ACL_AICORE_PIPE_EXECUTE_UTILIZATION: aclprofAicoreMetrics = aclprofAicoreMetrics(
        7,
    );
    pub const ACL_AICORE_MEMORY_ACCESS: aclprofAicoreMetrics = aclprofAicoreMetrics(8);
    pub const ACL_AICORE_NONE: aclprofAicoreMetrics = aclprofAicoreMetrics(255);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct aclprofAicoreMetrics(pub ::core::ffi::c_uint);
#[repr(C)]
#[derive(Debug)]
pub struct aclprofConfig {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct aclprofAicoreEvents {
    _unused: [u8; 0],
}
pub struct Acl {
    __library: ::libloading::Library,
    pub aclInit: Result<
        unsafe extern "C" fn(configPath: *const ::core::ffi::c_char) -> aclError,
        ::libloading::Error,
    >,
    pub aclFinalize: Result<unsafe extern "C" fn() -> aclError, ::libloading::Error>,
    pub aclFinalizeReference: Result<
        unsafe extern "C" fn(refCount: *mut u64) -> aclError,
        ::libloading::Error,
    >,
    pub aclGetRecentErrMsg: Result<
        unsafe extern "C" fn() -> *const ::core::ffi::c_char,
        ::libloading::Error,
    >,
    pub aclrtGetSocName: Result<
        unsafe extern "C" fn() -> *const ::core::ffi::c_char,
        ::libloading::Error,
    >,
    pub aclrtGetVersion: Result<
        unsafe extern "C" fn(
            majorVersion: *mut i32,
            minorVersion: *mut i32,
            patchVersion: *mut i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclsysGetCANNVersion: Result<
        unsafe extern "C" fn(
            name: aclCANNPackageName,
            version: *mut aclCANNPackageVersion,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclsysGetVersionStr: Result<
        unsafe extern "C" fn(
            pkgName: *mut ::core::ffi::c_char,
            versionStr: *mut ::core::ffi::c_char,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclGetCannAttribute: Result<
        unsafe extern "C" fn(cannAttr: aclCannAttr, value: *mut i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclGetCannAttributeList: Result<
        unsafe extern "C" fn(
            cannAttrList: *mut *const aclCannAttr,
            num: *mut usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetRunMode: Result<
        unsafe extern "C" fn(runMode: *mut aclrtRunMode) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetLastError: Result<
        unsafe extern "C" fn(level: aclrtLastErrLevel) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtPeekAtLastError: Result<
        unsafe extern "C" fn(level: aclrtLastErrLevel) -> aclError,
        ::libloading::Error,
    >,
    pub aclAppLog: Result<
        unsafe extern "C" fn(
            logLevel: aclLogLevel,
            func: *const ::core::ffi::c_char,
            file: *const ::core::ffi::c_char,
            line: u32,
            fmt: *const ::core::ffi::c_char,
            ...
        ),
        ::libloading::Error,
    >,
    pub aclDataTypeSize: Result<
        unsafe extern "C" fn(dataType: aclDataType) -> usize,
        ::libloading::Error,
    >,
    pub aclFloat16ToFloat: Result<
        unsafe extern "C" fn(value: aclFloat16) -> f32,
        ::libloading::Error,
    >,
    pub aclFloatToFloat16: Result<
        unsafe extern "C" fn(value: f32) -> aclFloat16,
        ::libloading::Error,
    >,
    pub aclGetDeviceCapability: Result<
        unsafe extern "C" fn(
            deviceId: u32,
            deviceInfo: aclDeviceInfo,
            value: *mut i64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetDeviceInfo: Result<
        unsafe extern "C" fn(
            deviceId: u32,
            attr: aclrtDevAttr,
            value: *mut i64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetSysParamOpt: Result<
        unsafe extern "C" fn(opt: aclSysParamOpt, value: i64) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetSysParamOpt: Result<
        unsafe extern "C" fn(opt: aclSysParamOpt, value: *mut i64) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCtxSetSysParamOpt: Result<
        unsafe extern "C" fn(opt: aclSysParamOpt, value: i64) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCtxGetSysParamOpt: Result<
        unsafe extern "C" fn(opt: aclSysParamOpt, value: *mut i64) -> aclError,
        ::libloading::Error,
    >,
    pub aclSetCompileopt: Result<
        unsafe extern "C" fn(
            opt: aclCompileOpt,
            value: *const ::core::ffi::c_char,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclGetCompileopt: Result<
        unsafe extern "C" fn(
            opt: aclCompileOpt,
            value: *mut ::core::ffi::c_char,
            length: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclGetCompileoptSize: Result<
        unsafe extern "C" fn(opt: aclCompileOpt) -> usize,
        ::libloading::Error,
    >,
    pub aclrtSetDeviceSatMode: Result<
        unsafe extern "C" fn(mode: aclrtFloatOverflowMode) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetDeviceSatMode: Result<
        unsafe extern "C" fn(mode: *mut aclrtFloatOverflowMode) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetOpWaitTimeout: Result<
        unsafe extern "C" fn(timeout: u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetOpExecuteTimeOut: Result<
        unsafe extern "C" fn(timeout: u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetDevice: Result<
        unsafe extern "C" fn(deviceId: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtResetDevice: Result<
        unsafe extern "C" fn(deviceId: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtResetDeviceForce: Result<
        unsafe extern "C" fn(deviceId: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetTsDevice: Result<
        unsafe extern "C" fn(tsId: aclrtTsId) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetDevice: Result<
        unsafe extern "C" fn(deviceId: *mut i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetDeviceCount: Result<
        unsafe extern "C" fn(count: *mut u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeDevice: Result<
        unsafe extern "C" fn() -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeDeviceWithTimeout: Result<
        unsafe extern "C" fn(timeout: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDeviceTaskAbort: Result<
        unsafe extern "C" fn(deviceId: i32, timeout: u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDeviceCanAccessPeer: Result<
        unsafe extern "C" fn(
            canAccessPeer: *mut i32,
            deviceId: i32,
            peerDeviceId: i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDeviceEnablePeerAccess: Result<
        unsafe extern "C" fn(peerDeviceId: i32, flags: u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDeviceDisablePeerAccess: Result<
        unsafe extern "C" fn(peerDeviceId: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDevicePeerAccessStatus: Result<
        unsafe extern "C" fn(
            deviceId: i32,
            peerDeviceId: i32,
            status: *mut i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDeviceGetBareTgid: Result<
        unsafe extern "C" fn(pid: *mut i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtQueryDeviceStatus: Result<
        unsafe extern "C" fn(
            deviceId: i32,
            deviceStatus: *mut aclrtDeviceStatus,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDeviceGetStreamPriorityRange: Result<
        unsafe extern "C" fn(
            leastPriority: *mut i32,
            greatestPriority: *mut i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetLogicDevIdByPhyDevId: Result<
        unsafe extern "C" fn(phyDevId: i32, logicDevId: *mut i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetDevicesTopo: Result<
        unsafe extern "C" fn(
            deviceId: u32,
            otherDeviceId: u32,
            value: *mut u64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateContext: Result<
        unsafe extern "C" fn(context: *mut aclrtContext, deviceId: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDestroyContext: Result<
        unsafe extern "C" fn(context: aclrtContext) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetCurrentContext: Result<
        unsafe extern "C" fn(context: aclrtContext) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetCurrentContext: Result<
        unsafe extern "C" fn(context: *mut aclrtContext) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCtxGetCurrentDefaultStream: Result<
        unsafe extern "C" fn(stream: *mut aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetPrimaryCtxState: Result<
        unsafe extern "C" fn(
            deviceId: i32,
            flags: *mut u32,
            active: *mut i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateStream: Result<
        unsafe extern "C" fn(stream: *mut aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateStreamWithConfig: Result<
        unsafe extern "C" fn(
            stream: *mut aclrtStream,
            priority: u32,
            flag: u32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDestroyStream: Result<
        unsafe extern "C" fn(stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDestroyStreamForce: Result<
        unsafe extern "C" fn(stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamAbort: Result<
        unsafe extern "C" fn(stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamQuery: Result<
        unsafe extern "C" fn(
            stream: aclrtStream,
            status: *mut aclrtStreamStatus,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeStream: Result<
        unsafe extern "C" fn(stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeStreamWithTimeout: Result<
        unsafe extern "C" fn(stream: aclrtStream, timeout: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamGetId: Result<
        unsafe extern "C" fn(stream: aclrtStream, streamId: *mut i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamGetPriority: Result<
        unsafe extern "C" fn(stream: aclrtStream, priority: *mut u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamGetFlags: Result<
        unsafe extern "C" fn(stream: aclrtStream, flags: *mut u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetStreamFailureMode: Result<
        unsafe extern "C" fn(stream: aclrtStream, mode: u64) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateEvent: Result<
        unsafe extern "C" fn(event: *mut aclrtEvent) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateEventWithFlag: Result<
        unsafe extern "C" fn(event: *mut aclrtEvent, flag: u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateEventExWithFlag: Result<
        unsafe extern "C" fn(event: *mut aclrtEvent, flag: u32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDestroyEvent: Result<
        unsafe extern "C" fn(event: aclrtEvent) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtRecordEvent: Result<
        unsafe extern "C" fn(event: aclrtEvent, stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtResetEvent: Result<
        unsafe extern "C" fn(event: aclrtEvent, stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamWaitEvent: Result<
        unsafe extern "C" fn(stream: aclrtStream, event: aclrtEvent) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtStreamWaitEventWithTimeout: Result<
        unsafe extern "C" fn(
            stream: aclrtStream,
            event: aclrtEvent,
            timeout: i32,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtQueryEvent: Result<
        unsafe extern "C" fn(
            event: aclrtEvent,
            status: *mut aclrtEventStatus,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtQueryEventStatus: Result<
        unsafe extern "C" fn(
            event: aclrtEvent,
            status: *mut aclrtEventRecordedStatus,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtQueryEventWaitStatus: Result<
        unsafe extern "C" fn(
            event: aclrtEvent,
            status: *mut aclrtEventWaitStatus,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeEvent: Result<
        unsafe extern "C" fn(event: aclrtEvent) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSynchronizeEventWithTimeout: Result<
        unsafe extern "C" fn(event: aclrtEvent, timeout: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtEventGetTimestamp: Result<
        unsafe extern "C" fn(event: aclrtEvent, timestamp: *mut u64) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtEventElapsedTime: Result<
        unsafe extern "C" fn(
            ms: *mut f32,
            startEvent: aclrtEvent,
            endEvent: aclrtEvent,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMalloc: Result<
        unsafe extern "C" fn(
            devPtr: *mut *mut ::core::ffi::c_void,
            size: usize,
            policy: aclrtMemMallocPolicy,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMallocAlign32: Result<
        unsafe extern "C" fn(
            devPtr: *mut *mut ::core::ffi::c_void,
            size: usize,
            policy: aclrtMemMallocPolicy,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtFree: Result<
        unsafe extern "C" fn(devPtr: *mut ::core::ffi::c_void) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMallocHost: Result<
        unsafe extern "C" fn(
            hostPtr: *mut *mut ::core::ffi::c_void,
            size: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtFreeHost: Result<
        unsafe extern "C" fn(hostPtr: *mut ::core::ffi::c_void) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtHostRegister: Result<
        unsafe extern "C" fn(
            ptr: *mut ::core::ffi::c_void,
            size: u64,
            type_: aclrtHostRegisterType,
            devPtr: *mut *mut ::core::ffi::c_void,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtHostUnregister: Result<
        unsafe extern "C" fn(ptr: *mut ::core::ffi::c_void) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemcpy: Result<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            destMax: usize,
            src: *const ::core::ffi::c_void,
            count: usize,
            kind: aclrtMemcpyKind,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemcpyAsync: Result<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            destMax: usize,
            src: *const ::core::ffi::c_void,
            count: usize,
            kind: aclrtMemcpyKind,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemcpy2d: Result<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            dpitch: usize,
            src: *const ::core::ffi::c_void,
            spitch: usize,
            width: usize,
            height: usize,
            kind: aclrtMemcpyKind,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemcpy2dAsync: Result<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            dpitch: usize,
            src: *const ::core::ffi::c_void,
            spitch: usize,
            width: usize,
            height: usize,
            kind: aclrtMemcpyKind,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemset: Result<
        unsafe extern "C" fn(
            devPtr: *mut ::core::ffi::c_void,
            maxCount: usize,
            value: i32,
            count: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemsetAsync: Result<
        unsafe extern "C" fn(
            devPtr: *mut ::core::ffi::c_void,
            maxCount: usize,
            value: i32,
            count: usize,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtGetMemInfo: Result<
        unsafe extern "C" fn(
            attr: aclrtMemAttr,
            free: *mut usize,
            total: *mut usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtReduceAsync: Result<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            src: *const ::core::ffi::c_void,
            count: u64,
            kind: aclrtReduceKind,
            type_: aclDataType,
            stream: aclrtStream,
            reserve: *mut ::core::ffi::c_void,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtReserveMemAddress: Result<
        unsafe extern "C" fn(
            virPtr: *mut *mut ::core::ffi::c_void,
            size: usize,
            alignment: usize,
            expectPtr: *mut ::core::ffi::c_void,
            flags: u64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtReleaseMemAddress: Result<
        unsafe extern "C" fn(virPtr: *mut ::core::ffi::c_void) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMallocPhysical: Result<
        unsafe extern "C" fn(
            handle: *mut aclrtDrvMemHandle,
            size: usize,
            prop: *const aclrtPhysicalMemProp,
            flags: u64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtFreePhysical: Result<
        unsafe extern "C" fn(handle: aclrtDrvMemHandle) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMapMem: Result<
        unsafe extern "C" fn(
            virPtr: *mut ::core::ffi::c_void,
            size: usize,
            offset: usize,
            handle: aclrtDrvMemHandle,
            flags: u64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtUnmapMem: Result<
        unsafe extern "C" fn(virPtr: *mut ::core::ffi::c_void) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemGetAllocationGranularity: Result<
        unsafe extern "C" fn(
            prop: *mut aclrtPhysicalMemProp,
            option: aclrtMemGranularityOptions,
            granularity: *mut usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemExportToShareableHandleV2: Result<
        unsafe extern "C" fn(
            handle: aclrtDrvMemHandle,
            flags: u64,
            shareType: aclrtMemSharedHandleType,
            shareableHandle: *mut ::core::ffi::c_void,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemSetPidToShareableHandleV2: Result<
        unsafe extern "C" fn(
            shareableHandle: *mut ::core::ffi::c_void,
            shareType: aclrtMemSharedHandleType,
            pid: *mut i32,
            pidNum: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtMemImportFromShareableHandleV2: Result<
        unsafe extern "C" fn(
            shareableHandle: *mut ::core::ffi::c_void,
            shareType: aclrtMemSharedHandleType,
            flags: u64,
            handle: *mut aclrtDrvMemHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtIpcMemGetExportKey: Result<
        unsafe extern "C" fn(
            devPtr: *mut ::core::ffi::c_void,
            size: usize,
            key: *mut ::core::ffi::c_char,
            len: usize,
            flags: u64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtIpcMemSetImportPid: Result<
        unsafe extern "C" fn(
            key: *const ::core::ffi::c_char,
            pid: *mut i32,
            num: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtIpcMemImportByKey: Result<
        unsafe extern "C" fn(
            devPtr: *mut *mut ::core::ffi::c_void,
            key: *const ::core::ffi::c_char,
            flags: u64,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtIpcMemClose: Result<
        unsafe extern "C" fn(key: *const ::core::ffi::c_char) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSubscribeReport: Result<
        unsafe extern "C" fn(threadId: u64, stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtUnSubscribeReport: Result<
        unsafe extern "C" fn(threadId: u64, stream: aclrtStream) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtProcessReport: Result<
        unsafe extern "C" fn(timeout: i32) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtSetExceptionInfoCallback: Result<
        unsafe extern "C" fn(callback: aclrtExceptionInfoCallback) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtLaunchCallback: Result<
        unsafe extern "C" fn(
            fn_: aclrtCallback,
            userData: *mut ::core::ffi::c_void,
            blockType: aclrtCallbackBlockType,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtLaunchHostFunc: Result<
        unsafe extern "C" fn(
            stream: aclrtStream,
            fn_: aclrtHostFunc,
            args: *mut ::core::ffi::c_void,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtBinaryLoadFromFile: Result<
        unsafe extern "C" fn(
            binPath: *const ::core::ffi::c_char,
            options: *mut aclrtBinaryLoadOptions,
            binHandle: *mut aclrtBinHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtBinaryLoadFromData: Result<
        unsafe extern "C" fn(
            data: *const ::core::ffi::c_void,
            length: usize,
            options: *const aclrtBinaryLoadOptions,
            binHandle: *mut aclrtBinHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtCreateBinary: Result<
        unsafe extern "C" fn(
            data: *const ::core::ffi::c_void,
            dataLen: usize,
        ) -> aclrtBinary,
        ::libloading::Error,
    >,
    pub aclrtBinaryLoad: Result<
        unsafe extern "C" fn(
            binary: aclrtBinary,
            binHandle: *mut aclrtBinHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtDestroyBinary: Result<
        unsafe extern "C" fn(binary: aclrtBinary) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtBinaryGetFunction: Result<
        unsafe extern "C" fn(
            binHandle: aclrtBinHandle,
            kernelName: *const ::core::ffi::c_char,
            funcHandle: *mut aclrtFuncHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtBinaryUnLoad: Result<
        unsafe extern "C" fn(binHandle: aclrtBinHandle) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtKernelArgsInit: Result<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            argsHandle: *mut aclrtArgsHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtKernelArgsAppend: Result<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            param: *mut ::core::ffi::c_void,
            paramSize: usize,
            paramHandle: *mut aclrtParamHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtKernelArgsAppendPlaceHolder: Result<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            paramHandle: *mut aclrtParamHandle,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtKernelArgsGetPlaceHolderBuffer: Result<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            paramHandle: aclrtParamHandle,
            dataSize: usize,
            bufferAddr: *mut *mut ::core::ffi::c_void,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtKernelArgsFinalize: Result<
        unsafe extern "C" fn(argsHandle: aclrtArgsHandle) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtKernelArgsParaUpdate: Result<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            paramHandle: aclrtParamHandle,
            param: *mut ::core::ffi::c_void,
            paramSize: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtLaunchKernelWithConfig: Result<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            numBlocks: u32,
            stream: aclrtStream,
            cfg: *mut aclrtLaunchKernelCfg,
            argsHandle: aclrtArgsHandle,
            reserve: *mut ::core::ffi::c_void,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtLaunchKernel: Result<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            numBlocks: u32,
            argsData: *const ::core::ffi::c_void,
            argsSize: usize,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtLaunchKernelV2: Result<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            numBlocks: u32,
            argsData: *const ::core::ffi::c_void,
            argsSize: usize,
            cfg: *mut aclrtLaunchKernelCfg,
            stream: aclrtStream,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclrtLaunchKernelWithHostArgs: Result<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            numBlocks: u32,
            stream: aclrtStream,
            cfg: *mut aclrtLaunchKernelCfg,
            hostArgs: *mut ::core::ffi::c_void,
            argsSize: usize,
            placeHolderArray: *mut aclrtPlaceHolderInfo,
            placeHolderNum: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclprofInit: Result<
        unsafe extern "C" fn(
            profilerResultPath: *const ::core::ffi::c_char,
            length: usize,
        ) -> aclError,
        ::libloading::Error,
    >,
    pub aclprofFinalize: Result<unsafe extern "C" fn() -> aclError, ::libloading::Error>,
    pub aclprofCreateConfig: Result<
        unsafe extern "C" fn(
            deviceIdList: *mut u32,
            deviceNums: u32,
            aicoreMetrics: aclprofAicoreMetrics,
            aicoreEvents: *const aclprofAicoreEvents,
            dataTypeConfig: u64,
        ) -> *mut aclprofConfig,
        ::libloading::Error,
    >,
    pub aclprofDestroyConfig: Result<
        unsafe extern "C" fn(profilerConfig: *const aclprofConfig) -> aclError,
        ::libloading::Error,
    >,
    pub aclprofStart: Result<
        unsafe extern "C" fn(profilerConfig: *const aclprofConfig) -> aclError,
        ::libloading::Error,
    >,
    pub aclprofStop: Result<
        unsafe extern "C" fn(profilerConfig: *const aclprofConfig) -> aclError,
        ::libloading::Error,
    >,
}
impl Acl {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let aclInit = unsafe { __library.get(b"aclInit\0") }.map(|sym| *sym);
        let aclFinalize = unsafe { __library.get(b"aclFinalize\0") }.map(|sym| *sym);
        let aclFinalizeReference = unsafe { __library.get(b"aclFinalizeReference\0") }
            .map(|sym| *sym);
        let aclGetRecentErrMsg = unsafe { __library.get(b"aclGetRecentErrMsg\0") }
            .map(|sym| *sym);
        let aclrtGetSocName = unsafe { __library.get(b"aclrtGetSocName\0") }
            .map(|sym| *sym);
        let aclrtGetVersion = unsafe { __library.get(b"aclrtGetVersion\0") }
            .map(|sym| *sym);
        let aclsysGetCANNVersion = unsafe { __library.get(b"aclsysGetCANNVersion\0") }
            .map(|sym| *sym);
        let aclsysGetVersionStr = unsafe { __library.get(b"aclsysGetVersionStr\0") }
            .map(|sym| *sym);
        let aclGetCannAttribute = unsafe { __library.get(b"aclGetCannAttribute\0") }
            .map(|sym| *sym);
        let aclGetCannAttributeList = unsafe {
            __library.get(b"aclGetCannAttributeList\0")
        }
            .map(|sym| *sym);
        let aclrtGetRunMode = unsafe { __library.get(b"aclrtGetRunMode\0") }
            .map(|sym| *sym);
        let aclrtGetLastError = unsafe { __library.get(b"aclrtGetLastError\0") }
            .map(|sym| *sym);
        let aclrtPeekAtLastError = unsafe { __library.get(b"aclrtPeekAtLastError\0") }
            .map(|sym| *sym);
        let aclAppLog = unsafe { __library.get(b"aclAppLog\0") }.map(|sym| *sym);
        let aclDataTypeSize = unsafe { __library.get(b"aclDataTypeSize\0") }
            .map(|sym| *sym);
        let aclFloat16ToFloat = unsafe { __library.get(b"aclFloat16ToFloat\0") }
            .map(|sym| *sym);
        let aclFloatToFloat16 = unsafe { __library.get(b"aclFloatToFloat16\0") }
            .map(|sym| *sym);
        let aclGetDeviceCapability = unsafe {
            __library.get(b"aclGetDeviceCapability\0")
        }
            .map(|sym| *sym);
        let aclrtGetDeviceInfo = unsafe { __library.get(b"aclrtGetDeviceInfo\0") }
            .map(|sym| *sym);
        let aclrtSetSysParamOpt = unsafe { __library.get(b"aclrtSetSysParamOpt\0") }
            .map(|sym| *sym);
        let aclrtGetSysParamOpt = unsafe { __library.get(b"aclrtGetSysParamOpt\0") }
            .map(|sym| *sym);
        let aclrtCtxSetSysParamOpt = unsafe {
            __library.get(b"aclrtCtxSetSysParamOpt\0")
        }
            .map(|sym| *sym);
        let aclrtCtxGetSysParamOpt = unsafe {
            __library.get(b"aclrtCtxGetSysParamOpt\0")
        }
            .map(|sym| *sym);
        let aclSetCompileopt = unsafe { __library.get(b"aclSetCompileopt\0") }
            .map(|sym| *sym);
        let aclGetCompileopt = unsafe { __library.get(b"aclGetCompileopt\0") }
            .map(|sym| *sym);
        let aclGetCompileoptSize = unsafe { __library.get(b"aclGetCompileoptSize\0") }
            .map(|sym| *sym);
        let aclrtSetDeviceSatMode = unsafe { __library.get(b"aclrtSetDeviceSatMode\0") }
            .map(|sym| *sym);
        let aclrtGetDeviceSatMode = unsafe { __library.get(b"aclrtGetDeviceSatMode\0") }
            .map(|sym| *sym);
        let aclrtSetOpWaitTimeout = unsafe { __library.get(b"aclrtSetOpWaitTimeout\0") }
            .map(|sym| *sym);
        let aclrtSetOpExecuteTimeOut = unsafe {
            __library.get(b"aclrtSetOpExecuteTimeOut\0")
        }
            .map(|sym| *sym);
        let aclrtSetDevice = unsafe { __library.get(b"aclrtSetDevice\0") }
            .map(|sym| *sym);
        let aclrtResetDevice = unsafe { __library.get(b"aclrtResetDevice\0") }
            .map(|sym| *sym);
        let aclrtResetDeviceForce = unsafe { __library.get(b"aclrtResetDeviceForce\0") }
            .map(|sym| *sym);
        let aclrtSetTsDevice = unsafe { __library.get(b"aclrtSetTsDevice\0") }
            .map(|sym| *sym);
        let aclrtGetDevice = unsafe { __library.get(b"aclrtGetDevice\0") }
            .map(|sym| *sym);
        let aclrtGetDeviceCount = unsafe { __library.get(b"aclrtGetDeviceCount\0") }
            .map(|sym| *sym);
        let aclrtSynchronizeDevice = unsafe {
            __library.get(b"aclrtSynchronizeDevice\0")
        }
            .map(|sym| *sym);
        let aclrtSynchronizeDeviceWithTimeout = unsafe {
            __library.get(b"aclrtSynchronizeDeviceWithTimeout\0")
        }
            .map(|sym| *sym);
        let aclrtDeviceTaskAbort = unsafe { __library.get(b"aclrtDeviceTaskAbort\0") }
            .map(|sym| *sym);
        let aclrtDeviceCanAccessPeer = unsafe {
            __library.get(b"aclrtDeviceCanAccessPeer\0")
        }
            .map(|sym| *sym);
        let aclrtDeviceEnablePeerAccess = unsafe {
            __library.get(b"aclrtDeviceEnablePeerAccess\0")
        }
            .map(|sym| *sym);
        let aclrtDeviceDisablePeerAccess = unsafe {
            __library.get(b"aclrtDeviceDisablePeerAccess\0")
        }
            .map(|sym| *sym);
        let aclrtDevicePeerAccessStatus = unsafe {
            __library.get(b"aclrtDevicePeerAccessStatus\0")
        }
            .map(|sym| *sym);
        let aclrtDeviceGetBareTgid = unsafe {
            __library.get(b"aclrtDeviceGetBareTgid\0")
        }
            .map(|sym| *sym);
        let aclrtQueryDeviceStatus = unsafe {
            __library.get(b"aclrtQueryDeviceStatus\0")
        }
            .map(|sym| *sym);
        let aclrtDeviceGetStreamPriorityRange = unsafe {
            __library.get(b"aclrtDeviceGetStreamPriorityRange\0")
        }
            .map(|sym| *sym);
        let aclrtGetLogicDevIdByPhyDevId = unsafe {
            __library.get(b"aclrtGetLogicDevIdByPhyDevId\0")
        }
            .map(|sym| *sym);
        let aclrtGetDevicesTopo = unsafe { __library.get(b"aclrtGetDevicesTopo\0") }
            .map(|sym| *sym);
        let aclrtCreateContext = unsafe { __library.get(b"aclrtCreateContext\0") }
            .map(|sym| *sym);
        let aclrtDestroyContext = unsafe { __library.get(b"aclrtDestroyContext\0") }
            .map(|sym| *sym);
        let aclrtSetCurrentContext = unsafe {
            __library.get(b"aclrtSetCurrentContext\0")
        }
            .map(|sym| *sym);
        let aclrtGetCurrentContext = unsafe {
            __library.get(b"aclrtGetCurrentContext\0")
        }
            .map(|sym| *sym);
        let aclrtCtxGetCurrentDefaultStream = unsafe {
            __library.get(b"aclrtCtxGetCurrentDefaultStream\0")
        }
            .map(|sym| *sym);
        let aclrtGetPrimaryCtxState = unsafe {
            __library.get(b"aclrtGetPrimaryCtxState\0")
        }
            .map(|sym| *sym);
        let aclrtCreateStream = unsafe { __library.get(b"aclrtCreateStream\0") }
            .map(|sym| *sym);
        let aclrtCreateStreamWithConfig = unsafe {
            __library.get(b"aclrtCreateStreamWithConfig\0")
        }
            .map(|sym| *sym);
        let aclrtDestroyStream = unsafe { __library.get(b"aclrtDestroyStream\0") }
            .map(|sym| *sym);
        let aclrtDestroyStreamForce = unsafe {
            __library.get(b"aclrtDestroyStreamForce\0")
        }
            .map(|sym| *sym);
        let aclrtStreamAbort = unsafe { __library.get(b"aclrtStreamAbort\0") }
            .map(|sym| *sym);
        let aclrtStreamQuery = unsafe { __library.get(b"aclrtStreamQuery\0") }
            .map(|sym| *sym);
        let aclrtSynchronizeStream = unsafe {
            __library.get(b"aclrtSynchronizeStream\0")
        }
            .map(|sym| *sym);
        let aclrtSynchronizeStreamWithTimeout = unsafe {
            __library.get(b"aclrtSynchronizeStreamWithTimeout\0")
        }
            .map(|sym| *sym);
        let aclrtStreamGetId = unsafe { __library.get(b"aclrtStreamGetId\0") }
            .map(|sym| *sym);
        let aclrtStreamGetPriority = unsafe {
            __library.get(b"aclrtStreamGetPriority\0")
        }
            .map(|sym| *sym);
        let aclrtStreamGetFlags = unsafe { __library.get(b"aclrtStreamGetFlags\0") }
            .map(|sym| *sym);
        let aclrtSetStreamFailureMode = unsafe {
            __library.get(b"aclrtSetStreamFailureMode\0")
        }
            .map(|sym| *sym);
        let aclrtCreateEvent = unsafe { __library.get(b"aclrtCreateEvent\0") }
            .map(|sym| *sym);
        let aclrtCreateEventWithFlag = unsafe {
            __library.get(b"aclrtCreateEventWithFlag\0")
        }
            .map(|sym| *sym);
        let aclrtCreateEventExWithFlag = unsafe {
            __library.get(b"aclrtCreateEventExWithFlag\0")
        }
            .map(|sym| *sym);
        let aclrtDestroyEvent = unsafe { __library.get(b"aclrtDestroyEvent\0") }
            .map(|sym| *sym);
        let aclrtRecordEvent = unsafe { __library.get(b"aclrtRecordEvent\0") }
            .map(|sym| *sym);
        let aclrtResetEvent = unsafe { __library.get(b"aclrtResetEvent\0") }
            .map(|sym| *sym);
        let aclrtStreamWaitEvent = unsafe { __library.get(b"aclrtStreamWaitEvent\0") }
            .map(|sym| *sym);
        let aclrtStreamWaitEventWithTimeout = unsafe {
            __library.get(b"aclrtStreamWaitEventWithTimeout\0")
        }
            .map(|sym| *sym);
        let aclrtQueryEvent = unsafe { __library.get(b"aclrtQueryEvent\0") }
            .map(|sym| *sym);
        let aclrtQueryEventStatus = unsafe { __library.get(b"aclrtQueryEventStatus\0") }
            .map(|sym| *sym);
        let aclrtQueryEventWaitStatus = unsafe {
            __library.get(b"aclrtQueryEventWaitStatus\0")
        }
            .map(|sym| *sym);
        let aclrtSynchronizeEvent = unsafe { __library.get(b"aclrtSynchronizeEvent\0") }
            .map(|sym| *sym);
        let aclrtSynchronizeEventWithTimeout = unsafe {
            __library.get(b"aclrtSynchronizeEventWithTimeout\0")
        }
            .map(|sym| *sym);
        let aclrtEventGetTimestamp = unsafe {
            __library.get(b"aclrtEventGetTimestamp\0")
        }
            .map(|sym| *sym);
        let aclrtEventElapsedTime = unsafe { __library.get(b"aclrtEventElapsedTime\0") }
            .map(|sym| *sym);
        let aclrtMalloc = unsafe { __library.get(b"aclrtMalloc\0") }.map(|sym| *sym);
        let aclrtMallocAlign32 = unsafe { __library.get(b"aclrtMallocAlign32\0") }
            .map(|sym| *sym);
        let aclrtFree = unsafe { __library.get(b"aclrtFree\0") }.map(|sym| *sym);
        let aclrtMallocHost = unsafe { __library.get(b"aclrtMallocHost\0") }
            .map(|sym| *sym);
        let aclrtFreeHost = unsafe { __library.get(b"aclrtFreeHost\0") }.map(|sym| *sym);
        let aclrtHostRegister = unsafe { __library.get(b"aclrtHostRegister\0") }
            .map(|sym| *sym);
        let aclrtHostUnregister = unsafe { __library.get(b"aclrtHostUnregister\0") }
            .map(|sym| *sym);
        let aclrtMemcpy = unsafe { __library.get(b"aclrtMemcpy\0") }.map(|sym| *sym);
        let aclrtMemcpyAsync = unsafe { __library.get(b"aclrtMemcpyAsync\0") }
            .map(|sym| *sym);
        let aclrtMemcpy2d = unsafe { __library.get(b"aclrtMemcpy2d\0") }.map(|sym| *sym);
        let aclrtMemcpy2dAsync = unsafe { __library.get(b"aclrtMemcpy2dAsync\0") }
            .map(|sym| *sym);
        let aclrtMemset = unsafe { __library.get(b"aclrtMemset\0") }.map(|sym| *sym);
        let aclrtMemsetAsync = unsafe { __library.get(b"aclrtMemsetAsync\0") }
            .map(|sym| *sym);
        let aclrtGetMemInfo = unsafe { __library.get(b"aclrtGetMemInfo\0") }
            .map(|sym| *sym);
        let aclrtReduceAsync = unsafe { __library.get(b"aclrtReduceAsync\0") }
            .map(|sym| *sym);
        let aclrtReserveMemAddress = unsafe {
            __library.get(b"aclrtReserveMemAddress\0")
        }
            .map(|sym| *sym);
        let aclrtReleaseMemAddress = unsafe {
            __library.get(b"aclrtReleaseMemAddress\0")
        }
            .map(|sym| *sym);
        let aclrtMallocPhysical = unsafe { __library.get(b"aclrtMallocPhysical\0") }
            .map(|sym| *sym);
        let aclrtFreePhysical = unsafe { __library.get(b"aclrtFreePhysical\0") }
            .map(|sym| *sym);
        let aclrtMapMem = unsafe { __library.get(b"aclrtMapMem\0") }.map(|sym| *sym);
        let aclrtUnmapMem = unsafe { __library.get(b"aclrtUnmapMem\0") }.map(|sym| *sym);
        let aclrtMemGetAllocationGranularity = unsafe {
            __library.get(b"aclrtMemGetAllocationGranularity\0")
        }
            .map(|sym| *sym);
        let aclrtMemExportToShareableHandleV2 = unsafe {
            __library.get(b"aclrtMemExportToShareableHandleV2\0")
        }
            .map(|sym| *sym);
        let aclrtMemSetPidToShareableHandleV2 = unsafe {
            __library.get(b"aclrtMemSetPidToShareableHandleV2\0")
        }
            .map(|sym| *sym);
        let aclrtMemImportFromShareableHandleV2 = unsafe {
            __library.get(b"aclrtMemImportFromShareableHandleV2\0")
        }
            .map(|sym| *sym);
        let aclrtIpcMemGetExportKey = unsafe {
            __library.get(b"aclrtIpcMemGetExportKey\0")
        }
            .map(|sym| *sym);
        let aclrtIpcMemSetImportPid = unsafe {
            __library.get(b"aclrtIpcMemSetImportPid\0")
        }
            .map(|sym| *sym);
        let aclrtIpcMemImportByKey = unsafe {
            __library.get(b"aclrtIpcMemImportByKey\0")
        }
            .map(|sym| *sym);
        let aclrtIpcMemClose = unsafe { __library.get(b"aclrtIpcMemClose\0") }
            .map(|sym| *sym);
        let aclrtSubscribeReport = unsafe { __library.get(b"aclrtSubscribeReport\0") }
            .map(|sym| *sym);
        let aclrtUnSubscribeReport = unsafe {
            __library.get(b"aclrtUnSubscribeReport\0")
        }
            .map(|sym| *sym);
        let aclrtProcessReport = unsafe { __library.get(b"aclrtProcessReport\0") }
            .map(|sym| *sym);
        let aclrtSetExceptionInfoCallback = unsafe {
            __library.get(b"aclrtSetExceptionInfoCallback\0")
        }
            .map(|sym| *sym);
        let aclrtLaunchCallback = unsafe { __library.get(b"aclrtLaunchCallback\0") }
            .map(|sym| *sym);
        let aclrtLaunchHostFunc = unsafe { __library.get(b"aclrtLaunchHostFunc\0") }
            .map(|sym| *sym);
        let aclrtBinaryLoadFromFile = unsafe {
            __library.get(b"aclrtBinaryLoadFromFile\0")
        }
            .map(|sym| *sym);
        let aclrtBinaryLoadFromData = unsafe {
            __library.get(b"aclrtBinaryLoadFromData\0")
        }
            .map(|sym| *sym);
        let aclrtCreateBinary = unsafe { __library.get(b"aclrtCreateBinary\0") }
            .map(|sym| *sym);
        let aclrtBinaryLoad = unsafe { __library.get(b"aclrtBinaryLoad\0") }
            .map(|sym| *sym);
        let aclrtDestroyBinary = unsafe { __library.get(b"aclrtDestroyBinary\0") }
            .map(|sym| *sym);
        let aclrtBinaryGetFunction = unsafe {
            __library.get(b"aclrtBinaryGetFunction\0")
        }
            .map(|sym| *sym);
        let aclrtBinaryUnLoad = unsafe { __library.get(b"aclrtBinaryUnLoad\0") }
            .map(|sym| *sym);
        let aclrtKernelArgsInit = unsafe { __library.get(b"aclrtKernelArgsInit\0") }
            .map(|sym| *sym);
        let aclrtKernelArgsAppend = unsafe { __library.get(b"aclrtKernelArgsAppend\0") }
            .map(|sym| *sym);
        let aclrtKernelArgsAppendPlaceHolder = unsafe {
            __library.get(b"aclrtKernelArgsAppendPlaceHolder\0")
        }
            .map(|sym| *sym);
        let aclrtKernelArgsGetPlaceHolderBuffer = unsafe {
            __library.get(b"aclrtKernelArgsGetPlaceHolderBuffer\0")
        }
            .map(|sym| *sym);
        let aclrtKernelArgsFinalize = unsafe {
            __library.get(b"aclrtKernelArgsFinalize\0")
        }
            .map(|sym| *sym);
        let aclrtKernelArgsParaUpdate = unsafe {
            __library.get(b"aclrtKernelArgsParaUpdate\0")
        }
            .map(|sym| *sym);
        let aclrtLaunchKernelWithConfig = unsafe {
            __library.get(b"aclrtLaunchKernelWithConfig\0")
        }
            .map(|sym| *sym);
        let aclrtLaunchKernel = unsafe { __library.get(b"aclrtLaunchKernel\0") }
            .map(|sym| *sym);
        let aclrtLaunchKernelV2 = unsafe { __library.get(b"aclrtLaunchKernelV2\0") }
            .map(|sym| *sym);
        let aclrtLaunchKernelWithHostArgs = unsafe {
            __library.get(b"aclrtLaunchKernelWithHostArgs\0")
        }
            .map(|sym| *sym);
        let aclprofInit = unsafe { __library.get(b"aclprofInit\0") }.map(|sym| *sym);
        let aclprofFinalize = unsafe { __library.get(b"aclprofFinalize\0") }
            .map(|sym| *sym);
        let aclprofCreateConfig = unsafe { __library.get(b"aclprofCreateConfig\0") }
            .map(|sym| *sym);
        let aclprofDestroyConfig = unsafe { __library.get(b"aclprofDestroyConfig\0") }
            .map(|sym| *sym);
        let aclprofStart = unsafe { __library.get(b"aclprofStart\0") }.map(|sym| *sym);
        let aclprofStop = unsafe { __library.get(b"aclprofStop\0") }.map(|sym| *sym);
        Ok(Acl {
            __library,
            aclInit,
            aclFinalize,
            aclFinalizeReference,
            aclGetRecentErrMsg,
            aclrtGetSocName,
            aclrtGetVersion,
            aclsysGetCANNVersion,
            aclsysGetVersionStr,
            aclGetCannAttribute,
            aclGetCannAttributeList,
            aclrtGetRunMode,
            aclrtGetLastError,
            aclrtPeekAtLastError,
            aclAppLog,
            aclDataTypeSize,
            aclFloat16ToFloat,
            aclFloatToFloat16,
            aclGetDeviceCapability,
            aclrtGetDeviceInfo,
            aclrtSetSysParamOpt,
            aclrtGetSysParamOpt,
            aclrtCtxSetSysParamOpt,
            aclrtCtxGetSysParamOpt,
            aclSetCompileopt,
            aclGetCompileopt,
            aclGetCompileoptSize,
            aclrtSetDeviceSatMode,
            aclrtGetDeviceSatMode,
            aclrtSetOpWaitTimeout,
            aclrtSetOpExecuteTimeOut,
            aclrtSetDevice,
            aclrtResetDevice,
            aclrtResetDeviceForce,
            aclrtSetTsDevice,
            aclrtGetDevice,
            aclrtGetDeviceCount,
            aclrtSynchronizeDevice,
            aclrtSynchronizeDeviceWithTimeout,
            aclrtDeviceTaskAbort,
            aclrtDeviceCanAccessPeer,
            aclrtDeviceEnablePeerAccess,
            aclrtDeviceDisablePeerAccess,
            aclrtDevicePeerAccessStatus,
            aclrtDeviceGetBareTgid,
            aclrtQueryDeviceStatus,
            aclrtDeviceGetStreamPriorityRange,
            aclrtGetLogicDevIdByPhyDevId,
            aclrtGetDevicesTopo,
            aclrtCreateContext,
            aclrtDestroyContext,
            aclrtSetCurrentContext,
            aclrtGetCurrentContext,
            aclrtCtxGetCurrentDefaultStream,
            aclrtGetPrimaryCtxState,
            aclrtCreateStream,
            aclrtCreateStreamWithConfig,
            aclrtDestroyStream,
            aclrtDestroyStreamForce,
            aclrtStreamAbort,
            aclrtStreamQuery,
            aclrtSynchronizeStream,
            aclrtSynchronizeStreamWithTimeout,
            aclrtStreamGetId,
            aclrtStreamGetPriority,
            aclrtStreamGetFlags,
            aclrtSetStreamFailureMode,
            aclrtCreateEvent,
            aclrtCreateEventWithFlag,
            aclrtCreateEventExWithFlag,
            aclrtDestroyEvent,
            aclrtRecordEvent,
            aclrtResetEvent,
            aclrtStreamWaitEvent,
            aclrtStreamWaitEventWithTimeout,
            aclrtQueryEvent,
            aclrtQueryEventStatus,
            aclrtQueryEventWaitStatus,
            aclrtSynchronizeEvent,
            aclrtSynchronizeEventWithTimeout,
            aclrtEventGetTimestamp,
            aclrtEventElapsedTime,
            aclrtMalloc,
            aclrtMallocAlign32,
            aclrtFree,
            aclrtMallocHost,
            aclrtFreeHost,
            aclrtHostRegister,
            aclrtHostUnregister,
            aclrtMemcpy,
            aclrtMemcpyAsync,
            aclrtMemcpy2d,
            aclrtMemcpy2dAsync,
            aclrtMemset,
            aclrtMemsetAsync,
            aclrtGetMemInfo,
            aclrtReduceAsync,
            aclrtReserveMemAddress,
            aclrtReleaseMemAddress,
            aclrtMallocPhysical,
            aclrtFreePhysical,
            aclrtMapMem,
            aclrtUnmapMem,
            aclrtMemGetAllocationGranularity,
            aclrtMemExportToShareableHandleV2,
            aclrtMemSetPidToShareableHandleV2,
            aclrtMemImportFromShareableHandleV2,
            aclrtIpcMemGetExportKey,
            aclrtIpcMemSetImportPid,
            aclrtIpcMemImportByKey,
            aclrtIpcMemClose,
            aclrtSubscribeReport,
            aclrtUnSubscribeReport,
            aclrtProcessReport,
            aclrtSetExceptionInfoCallback,
            aclrtLaunchCallback,
            aclrtLaunchHostFunc,
            aclrtBinaryLoadFromFile,
            aclrtBinaryLoadFromData,
            aclrtCreateBinary,
            aclrtBinaryLoad,
            aclrtDestroyBinary,
            aclrtBinaryGetFunction,
            aclrtBinaryUnLoad,
            aclrtKernelArgsInit,
            aclrtKernelArgsAppend,
            aclrtKernelArgsAppendPlaceHolder,
            aclrtKernelArgsGetPlaceHolderBuffer,
            aclrtKernelArgsFinalize,
            aclrtKernelArgsParaUpdate,
            aclrtLaunchKernelWithConfig,
            aclrtLaunchKernel,
            aclrtLaunchKernelV2,
            aclrtLaunchKernelWithHostArgs,
            aclprofInit,
            aclprofFinalize,
            aclprofCreateConfig,
            aclprofDestroyConfig,
            aclprofStart,
            aclprofStop,
        })
    }
    #[must_use]
    pub unsafe fn aclInit(&self, configPath: *const ::core::ffi::c_char) -> aclError {
        unsafe {
            (self.aclInit.as_ref().expect("Expected function, got error."))(configPath)
        }
    }
    #[must_use]
    pub unsafe fn aclFinalize(&self) -> aclError {
        unsafe { (self.aclFinalize.as_ref().expect("Expected function, got error."))() }
    }
    #[must_use]
    pub unsafe fn aclFinalizeReference(&self, refCount: *mut u64) -> aclError {
        unsafe {
            (self
                .aclFinalizeReference
                .as_ref()
                .expect("Expected function, got error."))(refCount)
        }
    }
    pub unsafe fn aclGetRecentErrMsg(&self) -> *const ::core::ffi::c_char {
        unsafe {
            (self.aclGetRecentErrMsg.as_ref().expect("Expected function, got error."))()
        }
    }
    pub unsafe fn aclrtGetSocName(&self) -> *const ::core::ffi::c_char {
        unsafe {
            (self.aclrtGetSocName.as_ref().expect("Expected function, got error."))()
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetVersion(
        &self,
        majorVersion: *mut i32,
        minorVersion: *mut i32,
        patchVersion: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetVersion
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(majorVersion, minorVersion, patchVersion)
        }
    }
    #[must_use]
    pub unsafe fn aclsysGetCANNVersion(
        &self,
        name: aclCANNPackageName,
        version: *mut aclCANNPackageVersion,
    ) -> aclError {
        unsafe {
            (self
                .aclsysGetCANNVersion
                .as_ref()
                .expect("Expected function, got error."))(name, version)
        }
    }
    #[must_use]
    pub unsafe fn aclsysGetVersionStr(
        &self,
        pkgName: *mut ::core::ffi::c_char,
        versionStr: *mut ::core::ffi::c_char,
    ) -> aclError {
        unsafe {
            (self
                .aclsysGetVersionStr
                .as_ref()
                .expect("Expected function, got error."))(pkgName, versionStr)
        }
    }
    #[must_use]
    pub unsafe fn aclGetCannAttribute(
        &self,
        cannAttr: aclCannAttr,
        value: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclGetCannAttribute
                .as_ref()
                .expect("Expected function, got error."))(cannAttr, value)
        }
    }
    #[must_use]
    pub unsafe fn aclGetCannAttributeList(
        &self,
        cannAttrList: *mut *const aclCannAttr,
        num: *mut usize,
    ) -> aclError {
        unsafe {
            (self
                .aclGetCannAttributeList
                .as_ref()
                .expect("Expected function, got error."))(cannAttrList, num)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetRunMode(&self, runMode: *mut aclrtRunMode) -> aclError {
        unsafe {
            (self
                .aclrtGetRunMode
                .as_ref()
                .expect("Expected function, got error."))(runMode)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetLastError(&self, level: aclrtLastErrLevel) -> aclError {
        unsafe {
            (self
                .aclrtGetLastError
                .as_ref()
                .expect("Expected function, got error."))(level)
        }
    }
    #[must_use]
    pub unsafe fn aclrtPeekAtLastError(&self, level: aclrtLastErrLevel) -> aclError {
        unsafe {
            (self
                .aclrtPeekAtLastError
                .as_ref()
                .expect("Expected function, got error."))(level)
        }
    }
    pub unsafe fn aclDataTypeSize(&self, dataType: aclDataType) -> usize {
        unsafe {
            (self
                .aclDataTypeSize
                .as_ref()
                .expect("Expected function, got error."))(dataType)
        }
    }
    pub unsafe fn aclFloat16ToFloat(&self, value: aclFloat16) -> f32 {
        unsafe {
            (self
                .aclFloat16ToFloat
                .as_ref()
                .expect("Expected function, got error."))(value)
        }
    }
    pub unsafe fn aclFloatToFloat16(&self, value: f32) -> aclFloat16 {
        unsafe {
            (self
                .aclFloatToFloat16
                .as_ref()
                .expect("Expected function, got error."))(value)
        }
    }
    #[must_use]
    pub unsafe fn aclGetDeviceCapability(
        &self,
        deviceId: u32,
        deviceInfo: aclDeviceInfo,
        value: *mut i64,
    ) -> aclError {
        unsafe {
            (self
                .aclGetDeviceCapability
                .as_ref()
                .expect("Expected function, got error."))(deviceId, deviceInfo, value)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetDeviceInfo(
        &self,
        deviceId: u32,
        attr: aclrtDevAttr,
        value: *mut i64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetDeviceInfo
                .as_ref()
                .expect("Expected function, got error."))(deviceId, attr, value)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetSysParamOpt(
        &self,
        opt: aclSysParamOpt,
        value: i64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSetSysParamOpt
                .as_ref()
                .expect("Expected function, got error."))(opt, value)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetSysParamOpt(
        &self,
        opt: aclSysParamOpt,
        value: *mut i64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetSysParamOpt
                .as_ref()
                .expect("Expected function, got error."))(opt, value)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCtxSetSysParamOpt(
        &self,
        opt: aclSysParamOpt,
        value: i64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCtxSetSysParamOpt
                .as_ref()
                .expect("Expected function, got error."))(opt, value)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCtxGetSysParamOpt(
        &self,
        opt: aclSysParamOpt,
        value: *mut i64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCtxGetSysParamOpt
                .as_ref()
                .expect("Expected function, got error."))(opt, value)
        }
    }
    #[must_use]
    pub unsafe fn aclSetCompileopt(
        &self,
        opt: aclCompileOpt,
        value: *const ::core::ffi::c_char,
    ) -> aclError {
        unsafe {
            (self
                .aclSetCompileopt
                .as_ref()
                .expect("Expected function, got error."))(opt, value)
        }
    }
    #[must_use]
    pub unsafe fn aclGetCompileopt(
        &self,
        opt: aclCompileOpt,
        value: *mut ::core::ffi::c_char,
        length: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclGetCompileopt
                .as_ref()
                .expect("Expected function, got error."))(opt, value, length)
        }
    }
    pub unsafe fn aclGetCompileoptSize(&self, opt: aclCompileOpt) -> usize {
        unsafe {
            (self
                .aclGetCompileoptSize
                .as_ref()
                .expect("Expected function, got error."))(opt)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetDeviceSatMode(
        &self,
        mode: aclrtFloatOverflowMode,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSetDeviceSatMode
                .as_ref()
                .expect("Expected function, got error."))(mode)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetDeviceSatMode(
        &self,
        mode: *mut aclrtFloatOverflowMode,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetDeviceSatMode
                .as_ref()
                .expect("Expected function, got error."))(mode)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetOpWaitTimeout(&self, timeout: u32) -> aclError {
        unsafe {
            (self
                .aclrtSetOpWaitTimeout
                .as_ref()
                .expect("Expected function, got error."))(timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetOpExecuteTimeOut(&self, timeout: u32) -> aclError {
        unsafe {
            (self
                .aclrtSetOpExecuteTimeOut
                .as_ref()
                .expect("Expected function, got error."))(timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetDevice(&self, deviceId: i32) -> aclError {
        unsafe {
            (self
                .aclrtSetDevice
                .as_ref()
                .expect("Expected function, got error."))(deviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtResetDevice(&self, deviceId: i32) -> aclError {
        unsafe {
            (self
                .aclrtResetDevice
                .as_ref()
                .expect("Expected function, got error."))(deviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtResetDeviceForce(&self, deviceId: i32) -> aclError {
        unsafe {
            (self
                .aclrtResetDeviceForce
                .as_ref()
                .expect("Expected function, got error."))(deviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetTsDevice(&self, tsId: aclrtTsId) -> aclError {
        unsafe {
            (self
                .aclrtSetTsDevice
                .as_ref()
                .expect("Expected function, got error."))(tsId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetDevice(&self, deviceId: *mut i32) -> aclError {
        unsafe {
            (self
                .aclrtGetDevice
                .as_ref()
                .expect("Expected function, got error."))(deviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetDeviceCount(&self, count: *mut u32) -> aclError {
        unsafe {
            (self
                .aclrtGetDeviceCount
                .as_ref()
                .expect("Expected function, got error."))(count)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSynchronizeDevice(&self) -> aclError {
        unsafe {
            (self
                .aclrtSynchronizeDevice
                .as_ref()
                .expect("Expected function, got error."))()
        }
    }
    #[must_use]
    pub unsafe fn aclrtSynchronizeDeviceWithTimeout(&self, timeout: i32) -> aclError {
        unsafe {
            (self
                .aclrtSynchronizeDeviceWithTimeout
                .as_ref()
                .expect("Expected function, got error."))(timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDeviceTaskAbort(&self, deviceId: i32, timeout: u32) -> aclError {
        unsafe {
            (self
                .aclrtDeviceTaskAbort
                .as_ref()
                .expect("Expected function, got error."))(deviceId, timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDeviceCanAccessPeer(
        &self,
        canAccessPeer: *mut i32,
        deviceId: i32,
        peerDeviceId: i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtDeviceCanAccessPeer
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(canAccessPeer, deviceId, peerDeviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDeviceEnablePeerAccess(
        &self,
        peerDeviceId: i32,
        flags: u32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtDeviceEnablePeerAccess
                .as_ref()
                .expect("Expected function, got error."))(peerDeviceId, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDeviceDisablePeerAccess(&self, peerDeviceId: i32) -> aclError {
        unsafe {
            (self
                .aclrtDeviceDisablePeerAccess
                .as_ref()
                .expect("Expected function, got error."))(peerDeviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDevicePeerAccessStatus(
        &self,
        deviceId: i32,
        peerDeviceId: i32,
        status: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtDevicePeerAccessStatus
                .as_ref()
                .expect("Expected function, got error."))(deviceId, peerDeviceId, status)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDeviceGetBareTgid(&self, pid: *mut i32) -> aclError {
        unsafe {
            (self
                .aclrtDeviceGetBareTgid
                .as_ref()
                .expect("Expected function, got error."))(pid)
        }
    }
    #[must_use]
    pub unsafe fn aclrtQueryDeviceStatus(
        &self,
        deviceId: i32,
        deviceStatus: *mut aclrtDeviceStatus,
    ) -> aclError {
        unsafe {
            (self
                .aclrtQueryDeviceStatus
                .as_ref()
                .expect("Expected function, got error."))(deviceId, deviceStatus)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDeviceGetStreamPriorityRange(
        &self,
        leastPriority: *mut i32,
        greatestPriority: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtDeviceGetStreamPriorityRange
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(leastPriority, greatestPriority)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetLogicDevIdByPhyDevId(
        &self,
        phyDevId: i32,
        logicDevId: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetLogicDevIdByPhyDevId
                .as_ref()
                .expect("Expected function, got error."))(phyDevId, logicDevId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetDevicesTopo(
        &self,
        deviceId: u32,
        otherDeviceId: u32,
        value: *mut u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetDevicesTopo
                .as_ref()
                .expect("Expected function, got error."))(deviceId, otherDeviceId, value)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCreateContext(
        &self,
        context: *mut aclrtContext,
        deviceId: i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCreateContext
                .as_ref()
                .expect("Expected function, got error."))(context, deviceId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDestroyContext(&self, context: aclrtContext) -> aclError {
        unsafe {
            (self
                .aclrtDestroyContext
                .as_ref()
                .expect("Expected function, got error."))(context)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetCurrentContext(&self, context: aclrtContext) -> aclError {
        unsafe {
            (self
                .aclrtSetCurrentContext
                .as_ref()
                .expect("Expected function, got error."))(context)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetCurrentContext(&self, context: *mut aclrtContext) -> aclError {
        unsafe {
            (self
                .aclrtGetCurrentContext
                .as_ref()
                .expect("Expected function, got error."))(context)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCtxGetCurrentDefaultStream(
        &self,
        stream: *mut aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCtxGetCurrentDefaultStream
                .as_ref()
                .expect("Expected function, got error."))(stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetPrimaryCtxState(
        &self,
        deviceId: i32,
        flags: *mut u32,
        active: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetPrimaryCtxState
                .as_ref()
                .expect("Expected function, got error."))(deviceId, flags, active)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCreateStream(&self, stream: *mut aclrtStream) -> aclError {
        unsafe {
            (self
                .aclrtCreateStream
                .as_ref()
                .expect("Expected function, got error."))(stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCreateStreamWithConfig(
        &self,
        stream: *mut aclrtStream,
        priority: u32,
        flag: u32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCreateStreamWithConfig
                .as_ref()
                .expect("Expected function, got error."))(stream, priority, flag)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDestroyStream(&self, stream: aclrtStream) -> aclError {
        unsafe {
            (self
                .aclrtDestroyStream
                .as_ref()
                .expect("Expected function, got error."))(stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDestroyStreamForce(&self, stream: aclrtStream) -> aclError {
        unsafe {
            (self
                .aclrtDestroyStreamForce
                .as_ref()
                .expect("Expected function, got error."))(stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamAbort(&self, stream: aclrtStream) -> aclError {
        unsafe {
            (self
                .aclrtStreamAbort
                .as_ref()
                .expect("Expected function, got error."))(stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamQuery(
        &self,
        stream: aclrtStream,
        status: *mut aclrtStreamStatus,
    ) -> aclError {
        unsafe {
            (self
                .aclrtStreamQuery
                .as_ref()
                .expect("Expected function, got error."))(stream, status)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSynchronizeStream(&self, stream: aclrtStream) -> aclError {
        unsafe {
            (self
                .aclrtSynchronizeStream
                .as_ref()
                .expect("Expected function, got error."))(stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSynchronizeStreamWithTimeout(
        &self,
        stream: aclrtStream,
        timeout: i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSynchronizeStreamWithTimeout
                .as_ref()
                .expect("Expected function, got error."))(stream, timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamGetId(
        &self,
        stream: aclrtStream,
        streamId: *mut i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtStreamGetId
                .as_ref()
                .expect("Expected function, got error."))(stream, streamId)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamGetPriority(
        &self,
        stream: aclrtStream,
        priority: *mut u32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtStreamGetPriority
                .as_ref()
                .expect("Expected function, got error."))(stream, priority)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamGetFlags(
        &self,
        stream: aclrtStream,
        flags: *mut u32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtStreamGetFlags
                .as_ref()
                .expect("Expected function, got error."))(stream, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetStreamFailureMode(
        &self,
        stream: aclrtStream,
        mode: u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSetStreamFailureMode
                .as_ref()
                .expect("Expected function, got error."))(stream, mode)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCreateEvent(&self, event: *mut aclrtEvent) -> aclError {
        unsafe {
            (self
                .aclrtCreateEvent
                .as_ref()
                .expect("Expected function, got error."))(event)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCreateEventWithFlag(
        &self,
        event: *mut aclrtEvent,
        flag: u32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCreateEventWithFlag
                .as_ref()
                .expect("Expected function, got error."))(event, flag)
        }
    }
    #[must_use]
    pub unsafe fn aclrtCreateEventExWithFlag(
        &self,
        event: *mut aclrtEvent,
        flag: u32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtCreateEventExWithFlag
                .as_ref()
                .expect("Expected function, got error."))(event, flag)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDestroyEvent(&self, event: aclrtEvent) -> aclError {
        unsafe {
            (self
                .aclrtDestroyEvent
                .as_ref()
                .expect("Expected function, got error."))(event)
        }
    }
    #[must_use]
    pub unsafe fn aclrtRecordEvent(
        &self,
        event: aclrtEvent,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtRecordEvent
                .as_ref()
                .expect("Expected function, got error."))(event, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtResetEvent(
        &self,
        event: aclrtEvent,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtResetEvent
                .as_ref()
                .expect("Expected function, got error."))(event, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamWaitEvent(
        &self,
        stream: aclrtStream,
        event: aclrtEvent,
    ) -> aclError {
        unsafe {
            (self
                .aclrtStreamWaitEvent
                .as_ref()
                .expect("Expected function, got error."))(stream, event)
        }
    }
    #[must_use]
    pub unsafe fn aclrtStreamWaitEventWithTimeout(
        &self,
        stream: aclrtStream,
        event: aclrtEvent,
        timeout: i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtStreamWaitEventWithTimeout
                .as_ref()
                .expect("Expected function, got error."))(stream, event, timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtQueryEvent(
        &self,
        event: aclrtEvent,
        status: *mut aclrtEventStatus,
    ) -> aclError {
        unsafe {
            (self
                .aclrtQueryEvent
                .as_ref()
                .expect("Expected function, got error."))(event, status)
        }
    }
    #[must_use]
    pub unsafe fn aclrtQueryEventStatus(
        &self,
        event: aclrtEvent,
        status: *mut aclrtEventRecordedStatus,
    ) -> aclError {
        unsafe {
            (self
                .aclrtQueryEventStatus
                .as_ref()
                .expect("Expected function, got error."))(event, status)
        }
    }
    #[must_use]
    pub unsafe fn aclrtQueryEventWaitStatus(
        &self,
        event: aclrtEvent,
        status: *mut aclrtEventWaitStatus,
    ) -> aclError {
        unsafe {
            (self
                .aclrtQueryEventWaitStatus
                .as_ref()
                .expect("Expected function, got error."))(event, status)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSynchronizeEvent(&self, event: aclrtEvent) -> aclError {
        unsafe {
            (self
                .aclrtSynchronizeEvent
                .as_ref()
                .expect("Expected function, got error."))(event)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSynchronizeEventWithTimeout(
        &self,
        event: aclrtEvent,
        timeout: i32,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSynchronizeEventWithTimeout
                .as_ref()
                .expect("Expected function, got error."))(event, timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtEventGetTimestamp(
        &self,
        event: aclrtEvent,
        timestamp: *mut u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtEventGetTimestamp
                .as_ref()
                .expect("Expected function, got error."))(event, timestamp)
        }
    }
    #[must_use]
    pub unsafe fn aclrtEventElapsedTime(
        &self,
        ms: *mut f32,
        startEvent: aclrtEvent,
        endEvent: aclrtEvent,
    ) -> aclError {
        unsafe {
            (self
                .aclrtEventElapsedTime
                .as_ref()
                .expect("Expected function, got error."))(ms, startEvent, endEvent)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMalloc(
        &self,
        devPtr: *mut *mut ::core::ffi::c_void,
        size: usize,
        policy: aclrtMemMallocPolicy,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMalloc
                .as_ref()
                .expect("Expected function, got error."))(devPtr, size, policy)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMallocAlign32(
        &self,
        devPtr: *mut *mut ::core::ffi::c_void,
        size: usize,
        policy: aclrtMemMallocPolicy,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMallocAlign32
                .as_ref()
                .expect("Expected function, got error."))(devPtr, size, policy)
        }
    }
    #[must_use]
    pub unsafe fn aclrtFree(&self, devPtr: *mut ::core::ffi::c_void) -> aclError {
        unsafe {
            (self.aclrtFree.as_ref().expect("Expected function, got error."))(devPtr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMallocHost(
        &self,
        hostPtr: *mut *mut ::core::ffi::c_void,
        size: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMallocHost
                .as_ref()
                .expect("Expected function, got error."))(hostPtr, size)
        }
    }
    #[must_use]
    pub unsafe fn aclrtFreeHost(&self, hostPtr: *mut ::core::ffi::c_void) -> aclError {
        unsafe {
            (self
                .aclrtFreeHost
                .as_ref()
                .expect("Expected function, got error."))(hostPtr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtHostRegister(
        &self,
        ptr: *mut ::core::ffi::c_void,
        size: u64,
        type_: aclrtHostRegisterType,
        devPtr: *mut *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtHostRegister
                .as_ref()
                .expect("Expected function, got error."))(ptr, size, type_, devPtr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtHostUnregister(&self, ptr: *mut ::core::ffi::c_void) -> aclError {
        unsafe {
            (self
                .aclrtHostUnregister
                .as_ref()
                .expect("Expected function, got error."))(ptr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemcpy(
        &self,
        dst: *mut ::core::ffi::c_void,
        destMax: usize,
        src: *const ::core::ffi::c_void,
        count: usize,
        kind: aclrtMemcpyKind,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemcpy
                .as_ref()
                .expect("Expected function, got error."))(dst, destMax, src, count, kind)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemcpyAsync(
        &self,
        dst: *mut ::core::ffi::c_void,
        destMax: usize,
        src: *const ::core::ffi::c_void,
        count: usize,
        kind: aclrtMemcpyKind,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemcpyAsync
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dst, destMax, src, count, kind, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemcpy2d(
        &self,
        dst: *mut ::core::ffi::c_void,
        dpitch: usize,
        src: *const ::core::ffi::c_void,
        spitch: usize,
        width: usize,
        height: usize,
        kind: aclrtMemcpyKind,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemcpy2d
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dst, dpitch, src, spitch, width, height, kind)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemcpy2dAsync(
        &self,
        dst: *mut ::core::ffi::c_void,
        dpitch: usize,
        src: *const ::core::ffi::c_void,
        spitch: usize,
        width: usize,
        height: usize,
        kind: aclrtMemcpyKind,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemcpy2dAsync
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dst, dpitch, src, spitch, width, height, kind, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemset(
        &self,
        devPtr: *mut ::core::ffi::c_void,
        maxCount: usize,
        value: i32,
        count: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemset
                .as_ref()
                .expect("Expected function, got error."))(devPtr, maxCount, value, count)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemsetAsync(
        &self,
        devPtr: *mut ::core::ffi::c_void,
        maxCount: usize,
        value: i32,
        count: usize,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemsetAsync
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(devPtr, maxCount, value, count, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtGetMemInfo(
        &self,
        attr: aclrtMemAttr,
        free: *mut usize,
        total: *mut usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtGetMemInfo
                .as_ref()
                .expect("Expected function, got error."))(attr, free, total)
        }
    }
    #[must_use]
    pub unsafe fn aclrtReduceAsync(
        &self,
        dst: *mut ::core::ffi::c_void,
        src: *const ::core::ffi::c_void,
        count: u64,
        kind: aclrtReduceKind,
        type_: aclDataType,
        stream: aclrtStream,
        reserve: *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtReduceAsync
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dst, src, count, kind, type_, stream, reserve)
        }
    }
    #[must_use]
    pub unsafe fn aclrtReserveMemAddress(
        &self,
        virPtr: *mut *mut ::core::ffi::c_void,
        size: usize,
        alignment: usize,
        expectPtr: *mut ::core::ffi::c_void,
        flags: u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtReserveMemAddress
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(virPtr, size, alignment, expectPtr, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtReleaseMemAddress(
        &self,
        virPtr: *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtReleaseMemAddress
                .as_ref()
                .expect("Expected function, got error."))(virPtr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMallocPhysical(
        &self,
        handle: *mut aclrtDrvMemHandle,
        size: usize,
        prop: *const aclrtPhysicalMemProp,
        flags: u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMallocPhysical
                .as_ref()
                .expect("Expected function, got error."))(handle, size, prop, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtFreePhysical(&self, handle: aclrtDrvMemHandle) -> aclError {
        unsafe {
            (self
                .aclrtFreePhysical
                .as_ref()
                .expect("Expected function, got error."))(handle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMapMem(
        &self,
        virPtr: *mut ::core::ffi::c_void,
        size: usize,
        offset: usize,
        handle: aclrtDrvMemHandle,
        flags: u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMapMem
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(virPtr, size, offset, handle, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtUnmapMem(&self, virPtr: *mut ::core::ffi::c_void) -> aclError {
        unsafe {
            (self.aclrtUnmapMem.as_ref().expect("Expected function, got error."))(virPtr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemGetAllocationGranularity(
        &self,
        prop: *mut aclrtPhysicalMemProp,
        option: aclrtMemGranularityOptions,
        granularity: *mut usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemGetAllocationGranularity
                .as_ref()
                .expect("Expected function, got error."))(prop, option, granularity)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemExportToShareableHandleV2(
        &self,
        handle: aclrtDrvMemHandle,
        flags: u64,
        shareType: aclrtMemSharedHandleType,
        shareableHandle: *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemExportToShareableHandleV2
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(handle, flags, shareType, shareableHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemSetPidToShareableHandleV2(
        &self,
        shareableHandle: *mut ::core::ffi::c_void,
        shareType: aclrtMemSharedHandleType,
        pid: *mut i32,
        pidNum: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemSetPidToShareableHandleV2
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(shareableHandle, shareType, pid, pidNum)
        }
    }
    #[must_use]
    pub unsafe fn aclrtMemImportFromShareableHandleV2(
        &self,
        shareableHandle: *mut ::core::ffi::c_void,
        shareType: aclrtMemSharedHandleType,
        flags: u64,
        handle: *mut aclrtDrvMemHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtMemImportFromShareableHandleV2
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(shareableHandle, shareType, flags, handle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtIpcMemGetExportKey(
        &self,
        devPtr: *mut ::core::ffi::c_void,
        size: usize,
        key: *mut ::core::ffi::c_char,
        len: usize,
        flags: u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtIpcMemGetExportKey
                .as_ref()
                .expect("Expected function, got error."))(devPtr, size, key, len, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtIpcMemSetImportPid(
        &self,
        key: *const ::core::ffi::c_char,
        pid: *mut i32,
        num: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtIpcMemSetImportPid
                .as_ref()
                .expect("Expected function, got error."))(key, pid, num)
        }
    }
    #[must_use]
    pub unsafe fn aclrtIpcMemImportByKey(
        &self,
        devPtr: *mut *mut ::core::ffi::c_void,
        key: *const ::core::ffi::c_char,
        flags: u64,
    ) -> aclError {
        unsafe {
            (self
                .aclrtIpcMemImportByKey
                .as_ref()
                .expect("Expected function, got error."))(devPtr, key, flags)
        }
    }
    #[must_use]
    pub unsafe fn aclrtIpcMemClose(&self, key: *const ::core::ffi::c_char) -> aclError {
        unsafe {
            (self.aclrtIpcMemClose.as_ref().expect("Expected function, got error."))(key)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSubscribeReport(
        &self,
        threadId: u64,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSubscribeReport
                .as_ref()
                .expect("Expected function, got error."))(threadId, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtUnSubscribeReport(
        &self,
        threadId: u64,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtUnSubscribeReport
                .as_ref()
                .expect("Expected function, got error."))(threadId, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtProcessReport(&self, timeout: i32) -> aclError {
        unsafe {
            (self
                .aclrtProcessReport
                .as_ref()
                .expect("Expected function, got error."))(timeout)
        }
    }
    #[must_use]
    pub unsafe fn aclrtSetExceptionInfoCallback(
        &self,
        callback: aclrtExceptionInfoCallback,
    ) -> aclError {
        unsafe {
            (self
                .aclrtSetExceptionInfoCallback
                .as_ref()
                .expect("Expected function, got error."))(callback)
        }
    }
    #[must_use]
    pub unsafe fn aclrtLaunchCallback(
        &self,
        fn_: aclrtCallback,
        userData: *mut ::core::ffi::c_void,
        blockType: aclrtCallbackBlockType,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtLaunchCallback
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(fn_, userData, blockType, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtLaunchHostFunc(
        &self,
        stream: aclrtStream,
        fn_: aclrtHostFunc,
        args: *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtLaunchHostFunc
                .as_ref()
                .expect("Expected function, got error."))(stream, fn_, args)
        }
    }
    #[must_use]
    pub unsafe fn aclrtBinaryLoadFromFile(
        &self,
        binPath: *const ::core::ffi::c_char,
        options: *mut aclrtBinaryLoadOptions,
        binHandle: *mut aclrtBinHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtBinaryLoadFromFile
                .as_ref()
                .expect("Expected function, got error."))(binPath, options, binHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtBinaryLoadFromData(
        &self,
        data: *const ::core::ffi::c_void,
        length: usize,
        options: *const aclrtBinaryLoadOptions,
        binHandle: *mut aclrtBinHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtBinaryLoadFromData
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(data, length, options, binHandle)
        }
    }
    pub unsafe fn aclrtCreateBinary(
        &self,
        data: *const ::core::ffi::c_void,
        dataLen: usize,
    ) -> aclrtBinary {
        unsafe {
            (self
                .aclrtCreateBinary
                .as_ref()
                .expect("Expected function, got error."))(data, dataLen)
        }
    }
    #[must_use]
    pub unsafe fn aclrtBinaryLoad(
        &self,
        binary: aclrtBinary,
        binHandle: *mut aclrtBinHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtBinaryLoad
                .as_ref()
                .expect("Expected function, got error."))(binary, binHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtDestroyBinary(&self, binary: aclrtBinary) -> aclError {
        unsafe {
            (self
                .aclrtDestroyBinary
                .as_ref()
                .expect("Expected function, got error."))(binary)
        }
    }
    #[must_use]
    pub unsafe fn aclrtBinaryGetFunction(
        &self,
        binHandle: aclrtBinHandle,
        kernelName: *const ::core::ffi::c_char,
        funcHandle: *mut aclrtFuncHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtBinaryGetFunction
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(binHandle, kernelName, funcHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtBinaryUnLoad(&self, binHandle: aclrtBinHandle) -> aclError {
        unsafe {
            (self
                .aclrtBinaryUnLoad
                .as_ref()
                .expect("Expected function, got error."))(binHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtKernelArgsInit(
        &self,
        funcHandle: aclrtFuncHandle,
        argsHandle: *mut aclrtArgsHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtKernelArgsInit
                .as_ref()
                .expect("Expected function, got error."))(funcHandle, argsHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtKernelArgsAppend(
        &self,
        argsHandle: aclrtArgsHandle,
        param: *mut ::core::ffi::c_void,
        paramSize: usize,
        paramHandle: *mut aclrtParamHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtKernelArgsAppend
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(argsHandle, param, paramSize, paramHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtKernelArgsAppendPlaceHolder(
        &self,
        argsHandle: aclrtArgsHandle,
        paramHandle: *mut aclrtParamHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtKernelArgsAppendPlaceHolder
                .as_ref()
                .expect("Expected function, got error."))(argsHandle, paramHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtKernelArgsGetPlaceHolderBuffer(
        &self,
        argsHandle: aclrtArgsHandle,
        paramHandle: aclrtParamHandle,
        dataSize: usize,
        bufferAddr: *mut *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtKernelArgsGetPlaceHolderBuffer
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(argsHandle, paramHandle, dataSize, bufferAddr)
        }
    }
    #[must_use]
    pub unsafe fn aclrtKernelArgsFinalize(
        &self,
        argsHandle: aclrtArgsHandle,
    ) -> aclError {
        unsafe {
            (self
                .aclrtKernelArgsFinalize
                .as_ref()
                .expect("Expected function, got error."))(argsHandle)
        }
    }
    #[must_use]
    pub unsafe fn aclrtKernelArgsParaUpdate(
        &self,
        argsHandle: aclrtArgsHandle,
        paramHandle: aclrtParamHandle,
        param: *mut ::core::ffi::c_void,
        paramSize: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtKernelArgsParaUpdate
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(argsHandle, paramHandle, param, paramSize)
        }
    }
    #[must_use]
    pub unsafe fn aclrtLaunchKernelWithConfig(
        &self,
        funcHandle: aclrtFuncHandle,
        numBlocks: u32,
        stream: aclrtStream,
        cfg: *mut aclrtLaunchKernelCfg,
        argsHandle: aclrtArgsHandle,
        reserve: *mut ::core::ffi::c_void,
    ) -> aclError {
        unsafe {
            (self
                .aclrtLaunchKernelWithConfig
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(funcHandle, numBlocks, stream, cfg, argsHandle, reserve)
        }
    }
    #[must_use]
    pub unsafe fn aclrtLaunchKernel(
        &self,
        funcHandle: aclrtFuncHandle,
        numBlocks: u32,
        argsData: *const ::core::ffi::c_void,
        argsSize: usize,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtLaunchKernel
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(funcHandle, numBlocks, argsData, argsSize, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtLaunchKernelV2(
        &self,
        funcHandle: aclrtFuncHandle,
        numBlocks: u32,
        argsData: *const ::core::ffi::c_void,
        argsSize: usize,
        cfg: *mut aclrtLaunchKernelCfg,
        stream: aclrtStream,
    ) -> aclError {
        unsafe {
            (self
                .aclrtLaunchKernelV2
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(funcHandle, numBlocks, argsData, argsSize, cfg, stream)
        }
    }
    #[must_use]
    pub unsafe fn aclrtLaunchKernelWithHostArgs(
        &self,
        funcHandle: aclrtFuncHandle,
        numBlocks: u32,
        stream: aclrtStream,
        cfg: *mut aclrtLaunchKernelCfg,
        hostArgs: *mut ::core::ffi::c_void,
        argsSize: usize,
        placeHolderArray: *mut aclrtPlaceHolderInfo,
        placeHolderNum: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclrtLaunchKernelWithHostArgs
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                funcHandle,
                numBlocks,
                stream,
                cfg,
                hostArgs,
                argsSize,
                placeHolderArray,
                placeHolderNum,
            )
        }
    }
    #[must_use]
    pub unsafe fn aclprofInit(
        &self,
        profilerResultPath: *const ::core::ffi::c_char,
        length: usize,
    ) -> aclError {
        unsafe {
            (self
                .aclprofInit
                .as_ref()
                .expect("Expected function, got error."))(profilerResultPath, length)
        }
    }
    #[must_use]
    pub unsafe fn aclprofFinalize(&self) -> aclError {
        unsafe {
            (self.aclprofFinalize.as_ref().expect("Expected function, got error."))()
        }
    }
    pub unsafe fn aclprofCreateConfig(
        &self,
        deviceIdList: *mut u32,
        deviceNums: u32,
        aicoreMetrics: aclprofAicoreMetrics,
        aicoreEvents: *const aclprofAicoreEvents,
        dataTypeConfig: u64,
    ) -> *mut aclprofConfig {
        unsafe {
            (self
                .aclprofCreateConfig
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(deviceIdList, deviceNums, aicoreMetrics, aicoreEvents, dataTypeConfig)
        }
    }
    #[must_use]
    pub unsafe fn aclprofDestroyConfig(
        &self,
        profilerConfig: *const aclprofConfig,
    ) -> aclError {
        unsafe {
            (self
                .aclprofDestroyConfig
                .as_ref()
                .expect("Expected function, got error."))(profilerConfig)
        }
    }
    #[must_use]
    pub unsafe fn aclprofStart(&self, profilerConfig: *const aclprofConfig) -> aclError {
        unsafe {
            (self
                .aclprofStart
                .as_ref()
                .expect("Expected function, got error."))(profilerConfig)
        }
    }
    #[must_use]
    pub unsafe fn aclprofStop(&self, profilerConfig: *const aclprofConfig) -> aclError {
        unsafe {
            (self
                .aclprofStop
                .as_ref()
                .expect("Expected function, got error."))(profilerConfig)
        }
    }
}
