/*
 * npushmem: what we call of the vendor's ACL runtime (libacl_rt.so, libascendcl.so), declared in our own words.
 *
 * It is not the vendor's header: it holds the facts of the ABI (names, types, layouts, values) that npushmem and its
 * emulator need, as documented for ACL 1.17, and `make abi-check` compares them with a real header set.
 *
 * Readers: ffi/build.rs, which makes from it the Rust types and the function table of npushmem_ffi::acl. It reads two
 * tags in the comments of functions:  @optional  the table's field is an Option, a library without it still loads;
 * @since V  the first CANN release whose public headers have the function (8.0.RC3 is the oldest looked at, and between
 * 8.3.RC1 and 8.5.0 only a subset of the headers is public), quoted when it is missing.
 *
 * Every function returns ACL_SUCCESS or an error code unless it says otherwise. Nothing in here is linked against.
 */
#ifndef NPUSHMEM_FFI_ACL_H
#define NPUSHMEM_FFI_ACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------ handles */

/** Result of a call: 0 or one of the ACL_ERROR codes. */
typedef int aclError;
/** A queue of work on one device, executed in order. */
typedef void *aclrtStream;
/** A point in a stream that others wait for or take the time of. */
typedef void *aclrtEvent;
/** A device's state for this process; each thread has a current one. */
typedef void *aclrtContext;
/** A one-shot flag between streams, also of different processes. */
typedef void *aclrtNotify;
/** Physical memory that is not mapped yet. */
typedef void *aclrtDrvMemHandle;
/** A loaded kernel object. */
typedef void *aclrtBinHandle;
/** One kernel of a loaded object. */
typedef void *aclrtFuncHandle;
/** A list of kernel arguments in the making. */
typedef void *aclrtArgsHandle;
/** One argument of such a list. */
typedef void *aclrtParamHandle;
/** A function that a stream calls on a host thread. */
typedef void (*aclrtHostFunc)(void *args);

/* ------------------------------------------------------------------------------------------------ error codes */

#define ACL_SUCCESS 0 /**< The call did what was asked. */
#define ACL_ERROR_INVALID_PARAM 100000 /**< An argument is outside of what the call takes. */
#define ACL_ERROR_UNINITIALIZE 100001 /**< aclInit has not been called. */
#define ACL_ERROR_REPEAT_INITIALIZE 100002 /**< aclInit was called twice. */
#define ACL_ERROR_INVALID_FILE 100003 /**< A file is missing or has the wrong content. */
#define ACL_ERROR_KERNEL_NOT_FOUND 100029 /**< No kernel of that name is loaded. */
#define ACL_ERROR_REPEAT_FINALIZE 100037 /**< aclFinalize was called twice. */
#define ACL_ERROR_COMPILING_STUB_MODE 100039 /**< The library is the toolkit's link-time stub. */
#define ACL_ERROR_BAD_ALLOC 200000 /**< Host memory ran out. */
#define ACL_ERROR_API_NOT_SUPPORT 200001 /**< This runtime does not implement the call. */
#define ACL_ERROR_INVALID_DEVICE 200002 /**< No such device, or none set. */
#define ACL_ERROR_MEMORY_ADDRESS_UNALIGNED 200003 /**< An address is not aligned as needed. */
#define ACL_ERROR_RESOURCE_NOT_MATCH 200004 /**< Objects of different devices or contexts met. */
#define ACL_ERROR_INVALID_RESOURCE_HANDLE 200005 /**< A handle is unknown or already destroyed. */
#define ACL_ERROR_FEATURE_UNSUPPORTED 200006 /**< The device lacks the feature. */
#define ACL_ERROR_STORAGE_OVER_LIMIT 300000 /**< More storage was asked for than is allowed. */
#define ACL_ERROR_INTERNAL_ERROR 500000 /**< The runtime failed inside. */
#define ACL_ERROR_FAILURE 500001 /**< A failure without a finer code. */
#define ACL_ERROR_GE_FAILURE 500002 /**< The graph engine failed. */
#define ACL_ERROR_RT_FAILURE 500003 /**< The layer below ACL failed. */
#define ACL_ERROR_DRV_FAILURE 500004 /**< The driver failed. */
#define ACL_ERROR_PROFILING_FAILURE 500005 /**< The profiler failed. */

#define ACL_ERROR_RT_PARAM_INVALID 107000 /**< The runtime refused an argument. */
#define ACL_ERROR_RT_INVALID_DEVICEID 107001 /**< The device number does not exist. */
#define ACL_ERROR_RT_CONTEXT_NULL 107002 /**< The calling thread has no current context. */
#define ACL_ERROR_RT_STREAM_CONTEXT 107003 /**< The stream belongs to another context. */
#define ACL_ERROR_RT_ADDR_UNALIGNED 107008 /**< The runtime met an unaligned address. */
#define ACL_ERROR_RT_FILE_OPEN 107009 /**< A file could not be opened. */
#define ACL_ERROR_RT_INVALID_MEMORY_TYPE 107016 /**< The memory is of a kind that the call does not take. */
#define ACL_ERROR_RT_INVALID_HANDLE 107017 /**< The runtime does not know the handle. */
#define ACL_ERROR_RT_INVALID_MALLOC_TYPE 107018 /**< The allocation policy is not possible here. */
#define ACL_ERROR_RT_WAIT_TIMEOUT 107019 /**< A wait ended by its time limit. */
#define ACL_ERROR_RT_TASK_TIMEOUT 107020 /**< A task ran longer than its limit. */
#define ACL_ERROR_RT_DEVICE_TASK_ABORT 107022 /**< The device's tasks are being aborted. */
#define ACL_ERROR_RT_STREAM_ABORT 107023 /**< The stream was aborted. */
#define ACL_ERROR_RT_SYMBOL_NOT_FOUND 107042 /**< The kernel object has no such global. */
#define ACL_ERROR_RT_INVALID_DEVICE_FUNCTION 107044 /**< The function is no kernel for this device. */
#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT 207000 /**< Chip or driver lack the feature. */
#define ACL_ERROR_RT_MEMORY_ALLOCATION 207001 /**< Device memory could not be had. */
#define ACL_ERROR_RT_MEMORY_FREE 207002 /**< Device memory could not be returned. */
#define ACL_ERROR_RT_AICORE_OVER_FLOW 207003 /**< A kernel's arithmetic overflowed. */
#define ACL_ERROR_RT_NO_DEVICE 207004 /**< No device is usable. */
#define ACL_ERROR_RT_RESOURCE_ALLOC_FAIL 207005 /**< A device resource ran out. */
#define ACL_ERROR_RT_NO_PERMISSION 207006 /**< The user or process may not do this. */
#define ACL_ERROR_RT_NO_EVENT_RESOURCE 207007 /**< No event is left. */
#define ACL_ERROR_RT_NO_STREAM_RESOURCE 207008 /**< No stream is left. */
#define ACL_ERROR_RT_NO_NOTIFY_RESOURCE 207009 /**< No notify is left. */
#define ACL_ERROR_RT_NO_MODEL_RESOURCE 207010 /**< No model slot is left. */
#define ACL_ERROR_RT_NO_CDQ_RESOURCE 207011 /**< No compute-direct queue is left. */
#define ACL_ERROR_RT_OVER_LIMIT 207012 /**< A limit of the runtime was passed. */
#define ACL_ERROR_RT_REPEATED_INIT 207015 /**< Something was initialised twice. */
#define ACL_ERROR_RT_DEVICE_OOM 207018 /**< The device's memory is full. */
#define ACL_ERROR_RT_TIMEOUT 207020 /**< An operation took too long. */
#define ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED 207021 /**< The link between two devices is of the wrong kind. */
#define ACL_ERROR_RT_INTERNAL_ERROR 507000 /**< The runtime failed inside. */
#define ACL_ERROR_RT_TS_ERROR 507001 /**< The device's task scheduler failed. */
#define ACL_ERROR_RT_CONTEXT_RELEASE_ERROR 507007 /**< A context was released while in use. */
#define ACL_ERROR_RT_SOC_VERSION 507008 /**< Software and chip do not fit together. */
#define ACL_ERROR_RT_LOST_HEARTBEAT 507010 /**< The device stopped answering. */
#define ACL_ERROR_RT_SYS_DMA 507013 /**< The system DMA engine failed. */
#define ACL_ERROR_RT_AICORE_TIMEOUT 507014 /**< A kernel on AI cores ran too long. */
#define ACL_ERROR_RT_AICORE_EXCEPTION 507015 /**< A kernel on AI cores raised an exception. */
#define ACL_ERROR_RT_AICORE_TRAP_EXCEPTION 507016 /**< A kernel on AI cores executed a trap. */
#define ACL_ERROR_RT_IPC_ERROR 507022 /**< Sharing between processes failed. */
#define ACL_ERROR_RT_KERNEL_LOOKUP 507027 /**< The kernel is not registered. */
#define ACL_ERROR_RT_KERNEL_DUPLICATE 507028 /**< The kernel is registered twice. */
#define ACL_ERROR_RT_DEV_SETUP_ERROR 507033 /**< The device could not be opened. */
#define ACL_ERROR_RT_VECTOR_CORE_TIMEOUT 507034 /**< A kernel on vector cores ran too long. */
#define ACL_ERROR_RT_VECTOR_CORE_EXCEPTION 507035 /**< A kernel on vector cores raised an exception. */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION 507036 /**< A kernel on vector cores executed a trap. */
#define ACL_ERROR_RT_AICORE_TRAP_READ_OVERFLOW 507042 /**< An AI core read out of bounds. */
#define ACL_ERROR_RT_AICORE_TRAP_WRITE_OVERFLOW 507043 /**< An AI core wrote out of bounds. */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_READ_OVERFLOW 507044 /**< A vector core read out of bounds. */
#define ACL_ERROR_RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW 507045 /**< A vector core wrote out of bounds. */
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046 /**< Waiting for a stream took too long. */
#define ACL_ERROR_RT_EVENT_SYNC_TIMEOUT 507047 /**< Waiting for an event took too long. */
#define ACL_ERROR_RT_DEVICE_MEM_ERROR 507053 /**< Device memory is damaged. */
#define ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR 507054 /**< Device memory has an error beyond repair. */
#define ACL_ERROR_RT_LINK_ERROR 507056 /**< A link between devices failed. */
#define ACL_ERROR_RT_SUSPECT_REMOTE_ERROR 507057 /**< A remote device probably failed. */
#define ACL_ERROR_RT_DRV_INTERNAL_ERROR 507899 /**< The driver failed inside. */
#define ACL_ERROR_RT_AICPU_INTERNAL_ERROR 507900 /**< The device's own CPU failed. */

/* ------------------------------------------------------------------------------------------------ flags */

#define ACL_EVENT_SYNC 0x1U /**< The event orders streams. */
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x2U /**< The event tells how far a stream is. */
#define ACL_EVENT_TIME_LINE 0x8U /**< The event takes the time. */
#define ACL_EVENT_DEVICE_USE_ONLY 0x10U /**< The event is used by the device alone. */
#define ACL_EVENT_EXTERNAL 0x20U /**< The event crosses captured graphs. */
#define ACL_EVENT_IPC 0x40U /**< The event can be shared with other processes. */

#define ACL_STREAM_FAST_LAUNCH 0x1U /**< Reserve device resources early: faster launches. */
#define ACL_STREAM_FAST_SYNC 0x2U /**< Synchronise by polling instead of sleeping. */
#define ACL_STREAM_PERSISTENT 0x4U /**< The stream is for models that are kept. */
#define ACL_STREAM_HUGE 0x8U /**< The stream holds more tasks. */
#define ACL_STREAM_CPU_SCHEDULE 0x10U /**< The device's CPU schedules the stream. */
#define ACL_STREAM_DEVICE_USE_ONLY 0x20U /**< The stream is used by the device alone. */

#define ACL_CONTINUE_ON_FAILURE 0x0U /**< Later tasks of a stream run after one failed. */
#define ACL_STOP_ON_FAILURE 0x1U /**< A failed task ends its stream. */

#define ACL_STREAM_WAIT_VALUE_GEQ 0x0U /**< aclrtValueWait: until the word reaches the value (wrapping). */
#define ACL_STREAM_WAIT_VALUE_EQ 0x1U /**< aclrtValueWait: until the word equals the value. */
#define ACL_STREAM_WAIT_VALUE_AND 0x2U /**< aclrtValueWait: until word AND value is not zero. */
#define ACL_STREAM_WAIT_VALUE_NOR 0x3U /**< aclrtValueWait: until NOT (word OR value) is not zero. */

#define ACL_NOTIFY_DEFAULT 0x0U /**< A notify for host and device. */
#define ACL_NOTIFY_DEVICE_USE_ONLY 0x1U /**< A notify for the device alone. */
#define ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT 0x0UL /**< Export a notify to listed processes only. */
#define ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x2UL /**< Export a notify to any process. */
#define ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT 0x0UL /**< Import a notify of the same device. */
#define ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS 0x2UL /**< Import a notify of another device. */
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT 0x0UL /**< Share memory with listed processes only. */
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL /**< Share memory with any process. */
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT 0x0UL /**< Import memory of the same device. */
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS 0x1UL /**< Import memory of another device. */
#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT 0x0UL /**< Export physical memory to listed processes only. */
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL /**< Export physical memory to any process. */

#define ACL_HOST_REG_MAPPED 0x2UL /**< aclrtHostRegisterV2: the device may use the memory. */
#define ACL_HOST_REG_IOMEMORY 0x4UL /**< aclrtHostRegisterV2: the memory belongs to an I/O device. */
#define ACL_HOST_REG_READONLY 0x8UL /**< aclrtHostRegisterV2: the device only reads. */
#define ACL_HOST_REG_PINNED 0x10000000UL /**< aclrtHostRegisterV2: keep the pages in place. */

#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO 0 /**< Reach the memory over the link between the dies of one package. */
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS 1 /**< Reach the memory over HCCS. */
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_ONE_PORT_PATH 2 /**< Reach the memory over one port of UB. */
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH 3 /**< Reach the memory over several ports of UB. */

#define ACL_RT_DEVS_TOPOLOGY_HCCS 0x1ULL /**< Two devices are joined by HCCS. */
#define ACL_RT_DEVS_TOPOLOGY_PIX 0x2ULL /**< Two devices share a PCIe switch. */
#define ACL_RT_DEVS_TOPOLOGY_PIB 0x4ULL /**< Two devices are joined by several PCIe switches. */
#define ACL_RT_DEVS_TOPOLOGY_PHB 0x8ULL /**< Two devices share a PCIe host bridge. */
#define ACL_RT_DEVS_TOPOLOGY_SYS 0x10ULL /**< Two devices are joined through the CPUs. */
#define ACL_RT_DEVS_TOPOLOGY_SIO 0x20ULL /**< Two devices are dies of one package. */
#define ACL_RT_DEVS_TOPOLOGY_HCCS_SW 0x40ULL /**< Two devices are joined by HCCS switches. */

#define ACL_RT_BINARY_MAGIC_ELF_AICORE 0x43554245U /**< The object's kernels use both kinds of core. */
#define ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE 0x41415246U /**< The object's kernels use vector cores. */
#define ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE 0x41494343U /**< The object's kernels use cube cores. */

/* ------------------------------------------------------------------------------------------------ enums, structs */

/** Where the calling program runs. */
typedef enum aclrtRunMode {
    ACL_DEVICE = 0, /**< On the device's own CPU. */
    ACL_HOST = 1, /**< On the host. */
} aclrtRunMode;

/** Page size and place of memory from aclrtMalloc. The values from LOW_BAND_WIDTH on are added to the others. */
typedef enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST = 0, /**< 2 MiB pages for large blocks, small ones when they run out. */
    ACL_MEM_MALLOC_HUGE_ONLY = 1, /**< 2 MiB pages or an error. */
    ACL_MEM_MALLOC_NORMAL_ONLY = 2, /**< Small pages. */
    ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3, /**< As HUGE_FIRST, for copies between devices. */
    ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4, /**< As HUGE_ONLY, for copies between devices. */
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5, /**< As NORMAL_ONLY, for copies between devices. */
    ACL_MEM_MALLOC_HUGE1G_ONLY = 6, /**< 1 GiB pages or an error. */
    ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7, /**< As HUGE1G_ONLY, for copies between devices. */
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x100, /**< Slow memory will do. */
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000, /**< Fast memory is wanted. */
    ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000, /**< User space only reads. */
} aclrtMemMallocPolicy;

/** Direction of a copy. */
typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST = 0, /**< Host to host. */
    ACL_MEMCPY_HOST_TO_DEVICE = 1, /**< Host to device. */
    ACL_MEMCPY_DEVICE_TO_HOST = 2, /**< Device to host. */
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3, /**< Device to device, the same or another. */
    ACL_MEMCPY_DEFAULT = 4, /**< The runtime looks at the addresses. */
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5, /**< Host to device through a buffer of the runtime. */
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6, /**< Within one device. */
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7, /**< Between two devices. */
} aclrtMemcpyKind;

/** Kind of physical memory. */
typedef enum aclrtMemAttr {
    ACL_DDR_MEM = 0, /**< DDR of any page size. */
    ACL_HBM_MEM = 1, /**< HBM of any page size. */
    ACL_DDR_MEM_HUGE = 2, /**< DDR in 2 MiB pages. */
    ACL_DDR_MEM_NORMAL = 3, /**< DDR in small pages. */
    ACL_HBM_MEM_HUGE = 4, /**< HBM in 2 MiB pages. */
    ACL_HBM_MEM_NORMAL = 5, /**< HBM in small pages. */
    ACL_DDR_MEM_P2P_HUGE = 6, /**< DDR in 2 MiB pages for other devices. */
    ACL_DDR_MEM_P2P_NORMAL = 7, /**< DDR in small pages for other devices. */
    ACL_HBM_MEM_P2P_HUGE = 8, /**< HBM in 2 MiB pages for other devices. */
    ACL_HBM_MEM_P2P_NORMAL = 9, /**< HBM in small pages for other devices. */
    ACL_HBM_MEM_HUGE1G = 10, /**< HBM in 1 GiB pages. */
    ACL_HBM_MEM_P2P_HUGE1G = 11, /**< HBM in 1 GiB pages for other devices. */
    ACL_MEM_NORMAL = 12, /**< The device's memory in small pages. */
    ACL_MEM_HUGE = 13, /**< The device's memory in 2 MiB pages. */
    ACL_MEM_HUGE1G = 14, /**< The device's memory in 1 GiB pages. */
    ACL_MEM_P2P_NORMAL = 15, /**< The device's memory in small pages for other devices. */
    ACL_MEM_P2P_HUGE = 16, /**< The device's memory in 2 MiB pages for other devices. */
    ACL_MEM_P2P_HUGE1G = 17, /**< The device's memory in 1 GiB pages for other devices. */
} aclrtMemAttr;

/** Whose memory it is. */
typedef enum aclrtMemLocationType {
    ACL_MEM_LOCATION_TYPE_HOST = 0, /**< Registered host memory. */
    ACL_MEM_LOCATION_TYPE_DEVICE = 1, /**< A device's memory. */
    ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2, /**< Memory the runtime knows nothing about. */
    ACL_MEM_LOCATION_TYPE_MANAGED = 3, /**< Memory that moves between host and device. */
    ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4, /**< Host memory of one NUMA node. */
} aclrtMemLocationType;

/** A place in the machine. */
typedef struct aclrtMemLocation {
    uint32_t id; /**< Device number, or NUMA node. */
    aclrtMemLocationType type; /**< What id counts. */
} aclrtMemLocation;

/** What kind of handle physical memory can be exported to. */
typedef enum aclrtMemHandleType {
    ACL_MEM_HANDLE_TYPE_NONE = 0, /**< The runtime's own. */
    ACL_MEM_HANDLE_TYPE_POSIX = 2, /**< A file descriptor. */
} aclrtMemHandleType;

/** How physical memory is allocated. */
typedef enum aclrtMemAllocationType {
    ACL_MEM_ALLOCATION_TYPE_PINNED = 0, /**< It stays in place. */
} aclrtMemAllocationType;

/** Form of a shareable handle. */
typedef enum aclrtMemSharedHandleType {
    ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 1, /**< A uint64_t, for one server. */
    ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2, /**< An aclrtMemFabricHandle, also between the servers of a super pod. */
} aclrtMemSharedHandleType;

/** A shareable handle that other servers of the super pod understand. */
typedef struct aclrtMemFabricHandle {
    uint8_t data[128]; /**< Opaque bytes. */
} aclrtMemFabricHandle;

/** What physical memory to allocate. */
typedef struct aclrtPhysicalMemProp {
    aclrtMemHandleType handleType; /**< Exportable form. */
    aclrtMemAllocationType allocationType; /**< Always pinned. */
    aclrtMemAttr memAttr; /**< Kind of memory and its pages. */
    aclrtMemLocation location; /**< Where. */
    uint64_t reserve; /**< Zero. */
} aclrtPhysicalMemProp;

/** Which allocation granularity is asked for. */
typedef enum aclrtMemGranularityOptions {
    ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0, /**< The least possible. */
    ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1, /**< The fastest. */
    ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 0xFFFF, /**< None. */
} aclrtMemGranularityOptions;

/** What a location may do with a mapped range. */
typedef enum aclrtMemAccessFlags {
    ACL_RT_MEM_ACCESS_FLAGS_NONE = 0, /**< Nothing. */
    ACL_RT_MEM_ACCESS_FLAGS_READ = 1, /**< Read. */
    ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3, /**< Read and write. */
} aclrtMemAccessFlags;

/** Access of one location to a mapped range. */
typedef struct aclrtMemAccessDesc {
    aclrtMemAccessFlags flags; /**< What it may do. */
    aclrtMemLocation location; /**< Who. */
    uint8_t rsv[12]; /**< Zero. */
} aclrtMemAccessDesc;

/** What the runtime knows about an address. */
typedef struct aclrtPtrAttributes {
    aclrtMemLocation location; /**< Whose memory. */
    uint32_t pageSize; /**< Bytes of a page. */
    uint32_t rsv[4]; /**< Unused. */
} aclrtPtrAttributes;

/** What an attribute of aclrtMallocWithCfg means. */
typedef enum aclrtMallocAttrType {
    ACL_RT_MEM_ATTR_RSV = 0, /**< Nothing. */
    ACL_RT_MEM_ATTR_MODULE_ID = 1, /**< The module that the memory is counted for. */
    ACL_RT_MEM_ATTR_DEVICE_ID = 2, /**< The device. */
    ACL_RT_MEM_ATTR_VA_FLAG = 3, /**< How the address is chosen. */
} aclrtMallocAttrType;

/** Value of an attribute of aclrtMallocWithCfg. */
typedef union aclrtMallocAttrValue {
    uint16_t moduleId; /**< For MODULE_ID. */
    uint32_t deviceId; /**< For DEVICE_ID. */
    uint32_t vaFlag; /**< For VA_FLAG. */
    uint8_t rsv[8]; /**< The union's size. */
} aclrtMallocAttrValue;

/** One attribute of aclrtMallocWithCfg. */
typedef struct aclrtMallocAttribute {
    aclrtMallocAttrType attr; /**< Which. */
    aclrtMallocAttrValue value; /**< Its value. */
} aclrtMallocAttribute;

/** The attributes of aclrtMallocWithCfg. */
typedef struct aclrtMallocConfig {
    aclrtMallocAttribute *attrs; /**< numAttrs of them. */
    size_t numAttrs; /**< How many. */
} aclrtMallocConfig;

/** How host memory is registered. */
typedef enum aclrtHostRegisterType {
    ACL_HOST_REGISTER_MAPPED = 0, /**< The device may use it. */
    ACL_HOST_REGISTER_IOMEMORY = 4, /**< It belongs to an I/O device. */
    ACL_HOST_REGISTER_READONLY = 8, /**< The device only reads it. */
} aclrtHostRegisterType;

/** Processes of another server. */
typedef struct aclrtServerPid {
    uint32_t sdid; /**< Device number in the super pod. */
    int32_t *pid; /**< num process numbers. */
    size_t num; /**< How many. */
} aclrtServerPid;

/** Attribute of shared memory. */
typedef enum aclrtIpcMemAttrType {
    ACL_RT_IPC_MEM_ATTR_ACCESS_LINK = 0, /**< The link it is reached by. */
} aclrtIpcMemAttrType;

/** Places of one copy of a batch. */
typedef struct aclrtMemcpyBatchAttr {
    aclrtMemLocation dstLoc; /**< Where to. */
    aclrtMemLocation srcLoc; /**< Where from. */
    uint8_t rsv[16]; /**< Zero. */
} aclrtMemcpyBatchAttr;

/** Has the device reached an event. */
typedef enum aclrtEventRecordedStatus {
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0, /**< Not yet. */
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1, /**< Yes. */
} aclrtEventRecordedStatus;

/** Is a stream empty. */
typedef enum aclrtStreamStatus {
    ACL_STREAM_STATUS_COMPLETE = 0, /**< All its work is done. */
    ACL_STREAM_STATUS_NOT_READY = 1, /**< Some is left. */
    ACL_STREAM_STATUS_RESERVED = 0xFFFF, /**< Unused. */
} aclrtStreamStatus;

/** Attribute of a stream. */
typedef enum aclrtStreamAttr {
    ACL_STREAM_ATTR_FAILURE_MODE = 1, /**< ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE. */
    ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = 2, /**< Report overflows of floating point. */
    ACL_STREAM_ATTR_USER_CUSTOM_TAG = 3, /**< A number of the user's. */
    ACL_STREAM_ATTR_CACHE_OP_INFO = 4, /**< Keep information on operators. */
    ACL_STREAM_ATTR_PRIORITY = 5, /**< Priority. */
} aclrtStreamAttr;

/** Value of a stream's attribute. */
typedef union aclrtStreamAttrValue {
    uint64_t failureMode; /**< For FAILURE_MODE. */
    uint32_t overflowSwitch; /**< For FLOAT_OVERFLOW_CHECK. */
    uint32_t userCustomTag; /**< For USER_CUSTOM_TAG. */
    uint32_t cacheOpInfoSwitch; /**< For CACHE_OP_INFO. */
    uint32_t streamPriority; /**< For PRIORITY. */
    uint32_t reserve[4]; /**< The union's size. */
} aclrtStreamAttrValue;

/** Health of a device. */
typedef enum aclrtDeviceStatus {
    ACL_RT_DEVICE_STATUS_NORMAL = 0, /**< It works. */
    ACL_RT_DEVICE_STATUS_ABNORMAL = 1, /**< It does not. */
    ACL_RT_DEVICE_STATUS_END = 0xFFFF, /**< Unused. */
} aclrtDeviceStatus;

/** What aclrtGetDeviceInfo tells. */
typedef enum aclrtDevAttr {
    ACL_DEV_ATTR_AICPU_CORE_NUM = 1, /**< CPUs on the device. */
    ACL_DEV_ATTR_AICORE_CORE_NUM = 101, /**< AI cores. */
    ACL_DEV_ATTR_CUBE_CORE_NUM = 102, /**< Cube (AIC) cores. */
    ACL_DEV_ATTR_VECTOR_CORE_NUM = 201, /**< Vector (AIV) cores. */
    ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204, /**< Bytes of unified buffer a vector core. */
    ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301, /**< Bytes of device memory. */
    ACL_DEV_ATTR_L2_CACHE_SIZE = 302, /**< Bytes of L2 cache. */
    ACL_DEV_ATTR_PHY_CHIP_ID = 402, /**< Chip number. */
    ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403, /**< The device's number in its super pod. */
    ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404, /**< The server's number in its super pod. */
    ACL_DEV_ATTR_SUPER_POD_ID = 405, /**< The super pod's number. */
    ACL_DEV_ATTR_IS_VIRTUAL = 501, /**< 1: a slice of a device. */
    ACL_DEV_ATTR_NPU_ARCH = 601, /**< Architecture number, for instance 2201. */
} aclrtDevAttr;

/** Which kind of core a limit is for. */
typedef enum aclrtDevResLimitType {
    ACL_RT_DEV_RES_CUBE_CORE = 0, /**< Cube cores. */
    ACL_RT_DEV_RES_VECTOR_CORE = 1, /**< Vector cores. */
} aclrtDevResLimitType;

/** Operation of aclrtReduceAsync. */
typedef enum aclrtReduceKind {
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 10, /**< Sum. */
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 11, /**< Largest. */
    ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 12, /**< Smallest. */
} aclrtReduceKind;

/** Operation on a device's caches. */
typedef enum aclrtCmoType {
    ACL_RT_CMO_TYPE_PREFETCH = 0, /**< Load into L2. */
    ACL_RT_CMO_TYPE_WRITEBACK = 1, /**< Write back, keep. */
    ACL_RT_CMO_TYPE_INVALID = 2, /**< Drop. */
    ACL_RT_CMO_TYPE_FLUSH = 3, /**< Write back, drop. */
} aclrtCmoType;

/** Type of an element. */
typedef enum aclDataType {
    ACL_DT_UNDEFINED = -1, /**< None. */
    ACL_FLOAT = 0, /**< 32-bit float. */
    ACL_FLOAT16 = 1, /**< 16-bit float. */
    ACL_INT8 = 2, /**< 8-bit integer. */
    ACL_INT32 = 3, /**< 32-bit integer. */
    ACL_UINT8 = 4, /**< 8-bit unsigned. */
    ACL_INT16 = 6, /**< 16-bit integer. */
    ACL_UINT16 = 7, /**< 16-bit unsigned. */
    ACL_UINT32 = 8, /**< 32-bit unsigned. */
    ACL_INT64 = 9, /**< 64-bit integer. */
    ACL_UINT64 = 10, /**< 64-bit unsigned. */
    ACL_DOUBLE = 11, /**< 64-bit float. */
    ACL_BOOL = 12, /**< One byte, 0 or 1. */
    ACL_COMPLEX64 = 16, /**< Two 32-bit floats. */
    ACL_COMPLEX128 = 17, /**< Two 64-bit floats. */
    ACL_BF16 = 27, /**< 16-bit brain float. */
} aclDataType;

/** Option of loading a kernel object. */
typedef enum aclrtBinaryLoadOptionType {
    ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1, /**< Copy to the device at first use. */
    ACL_RT_BINARY_LOAD_OPT_MAGIC = 2, /**< Which cores the kernels use: ACL_RT_BINARY_MAGIC_ELF. */
    ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3, /**< How kernels for the device's CPU are found. */
} aclrtBinaryLoadOptionType;

/** Value of an option of loading a kernel object. */
typedef union aclrtBinaryLoadOptionValue {
    uint32_t isLazyLoad; /**< For LAZY_LOAD. */
    uint32_t magic; /**< For MAGIC. */
    int32_t cpuKernelMode; /**< For CPU_KERNEL_MODE. */
    uint32_t rsv[4]; /**< The union's size. */
} aclrtBinaryLoadOptionValue;

/** One option of loading a kernel object. */
typedef struct aclrtBinaryLoadOption {
    aclrtBinaryLoadOptionType type; /**< Which. */
    aclrtBinaryLoadOptionValue value; /**< Its value. */
} aclrtBinaryLoadOption;

/** The options of loading a kernel object. */
typedef struct aclrtBinaryLoadOptions {
    aclrtBinaryLoadOption *options; /**< numOpt of them. */
    size_t numOpt; /**< How many. */
} aclrtBinaryLoadOptions;

/** Kind of core that a launch asks for. */
typedef enum aclrtEngineType {
    ACL_RT_ENGINE_TYPE_AIC = 0, /**< Cube cores. */
    ACL_RT_ENGINE_TYPE_AIV = 1, /**< Vector cores. */
} aclrtEngineType;

/** Attribute of a launch. */
typedef enum aclrtLaunchKernelAttrId {
    ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1, /**< 0: blocks start as cores get free; 1: all together. */
    ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE = 2, /**< Bytes of unified buffer for SIMT kernels. */
    ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE = 3, /**< Kind of core. */
    ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET = 4, /**< Number of the first block. */
    ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH = 5, /**< Keep the next task from loading early. */
    ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP = 6, /**< Dump the kernel's data. */
    ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7, /**< Limit in seconds. */
    ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US = 8, /**< Limit in microseconds. */
    ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING = 9, /**< Take a profile. */
} aclrtLaunchKernelAttrId;

/** A time limit in microseconds, in two halves. */
typedef struct aclrtTimeoutUs {
    uint32_t timeoutLow; /**< Lower 32 bits. */
    uint32_t timeoutHigh; /**< Upper 32 bits. */
} aclrtTimeoutUs;

/** Value of a launch attribute. */
typedef union aclrtLaunchKernelAttrValue {
    uint8_t schemMode; /**< For SCHEM_MODE. */
    uint32_t dynUBufSize; /**< For DYN_UBUF_SIZE. */
    aclrtEngineType engineType; /**< For ENGINE_TYPE. */
    uint32_t blockDimOffset; /**< For BLOCKDIM_OFFSET. */
    uint8_t isBlockTaskPrefetch; /**< For BLOCK_TASK_PREFETCH. */
    uint8_t isDataDump; /**< For DATA_DUMP. */
    uint16_t timeout; /**< For TIMEOUT. */
    aclrtTimeoutUs timeoutUs; /**< For TIMEOUT_US. */
    uint8_t enableProfiling; /**< For ENABLE_PROFILING. */
    uint32_t rsv[4]; /**< The union's size. */
} aclrtLaunchKernelAttrValue;

/** One attribute of a launch. */
typedef struct aclrtLaunchKernelAttr {
    aclrtLaunchKernelAttrId id; /**< Which. */
    aclrtLaunchKernelAttrValue value; /**< Its value. */
} aclrtLaunchKernelAttr;

/** The attributes of a launch. */
typedef struct aclrtLaunchKernelCfg {
    aclrtLaunchKernelAttr *attrs; /**< numAttrs of them. */
    size_t numAttrs; /**< How many. */
} aclrtLaunchKernelCfg;

/** An argument whose data follows the arguments: the runtime writes its device address into the argument. */
typedef struct aclrtPlaceHolderInfo {
    uint32_t addrOffset; /**< Where the address goes, in bytes from the start of the arguments. */
    uint32_t dataOffset; /**< Where the data stands, likewise. */
} aclrtPlaceHolderInfo;

/* ------------------------------------------------------------------------------------------------ process, device */

/** Starts the runtime. configPath: a JSON file, or NULL. @since 8.0.RC3 */
aclError aclInit(const char *configPath);
/** Ends the runtime in this process. @since 8.0.RC3 */
aclError aclFinalize(void);
/** Text of the calling thread's latest error, or NULL. The next call on this thread may overwrite it. @since 8.0.RC3 */
const char *aclGetRecentErrMsg(void);
/** Version of the ACL interface. @since 8.0.RC3 */
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
/** Name of the chip, for instance "Ascend910B1"; NULL if it cannot be told. Valid as long as the process.
 * @since 8.0.RC3 */
const char *aclrtGetSocName(void);
/** Opens a device and makes its default context the thread's current one. @since 8.0.RC3 */
aclError aclrtSetDevice(int32_t deviceId);
/** Gives the device back; the last call frees what the process had there. @since 8.0.RC3 */
aclError aclrtResetDevice(int32_t deviceId);
/** Gives the device back at once, however often it was set. @optional @since 8.5.0 */
aclError aclrtResetDeviceForce(int32_t deviceId);
/** The thread's device. @since 8.0.RC3 */
aclError aclrtGetDevice(int32_t *deviceId);
/** Number of devices that this process can use. @since 8.0.RC3 */
aclError aclrtGetDeviceCount(uint32_t *count);
/** Where this program runs. @since 8.0.RC3 */
aclError aclrtGetRunMode(aclrtRunMode *runMode);
/** One fact about a device. @since 8.5.0 */
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value);
/** Health of a device. @since 8.5.0 */
aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus);
/** How two devices are joined: ACL_RT_DEVS_TOPOLOGY bits. @since 8.5.0 */
aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t *value);
/** User's device number to logical number. @since 8.5.0 */
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId);
/** Logical device number to physical number. @since 8.5.0 */
aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId);
/** Logical device number to user's number. @optional @since 8.5.0 */
aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid);
/** Can kernels built for socVersion run here: 1 or 0. @optional @since 8.5.0 */
aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible);
/** How many cores of a kind this process may use. @optional @since 8.3.RC1 */
aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value);
/** Sets how many cores of a kind this process may use. @optional @since 8.3.RC1 */
aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value);

/* ------------------------------------------------------------------------------------------------ contexts */

/** Makes a context on a device and makes it the thread's current one. @since 8.0.RC3 */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);
/** Destroys a context that aclrtCreateContext made. @since 8.0.RC3 */
aclError aclrtDestroyContext(aclrtContext context);
/** Makes a context the thread's current one. @since 8.0.RC3 */
aclError aclrtSetCurrentContext(aclrtContext context);
/** The thread's current context. @since 8.0.RC3 */
aclError aclrtGetCurrentContext(aclrtContext *context);

/* ------------------------------------------------------------------------------------------------ streams, events */

/** Makes a stream. @since 8.0.RC3 */
aclError aclrtCreateStream(aclrtStream *stream);
/** Makes a stream with a priority and ACL_STREAM flags. @since 8.0.RC3 */
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
/** Destroys a stream after its work is done. @since 8.0.RC3 */
aclError aclrtDestroyStream(aclrtStream stream);
/** Destroys a stream and drops its work. @since 8.0.RC3 */
aclError aclrtDestroyStreamForce(aclrtStream stream);
/** Waits until a stream's work is done. NULL is the default stream. @since 8.0.RC3 */
aclError aclrtSynchronizeStream(aclrtStream stream);
/** Likewise, for at most timeout milliseconds (-1: for ever). @since 8.0.RC3 */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
/** Waits until all streams of the current context are done. @since 8.0.RC3 */
aclError aclrtSynchronizeDevice(void);
/** Is a stream's work done. @since 8.0.RC3 */
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
/** Later work of the stream waits for the event. @since 8.0.RC3 */
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
/** Sets an attribute of a stream. @optional @since 8.5.0 */
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value);
/** The stream that NULL stands for in the current context. @optional @since 8.5.0 */
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);
/** Makes an event. @since 8.0.RC3 */
aclError aclrtCreateEvent(aclrtEvent *event);
/** Makes an event with ACL_EVENT flags, from the limited hardware pool. @optional @since 8.0.RC3 */
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
/** Makes an event with ACL_EVENT flags, without the limit of the hardware pool. @since 8.0.RC3 */
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
/** Destroys an event. @since 8.0.RC3 */
aclError aclrtDestroyEvent(aclrtEvent event);
/** Puts an event into a stream. @since 8.0.RC3 */
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
/** Waits until the device has reached the event. @since 8.0.RC3 */
aclError aclrtSynchronizeEvent(aclrtEvent event);
/** Has the device reached the event. @since 8.0.RC3 */
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
/** Milliseconds between two events. @since 8.0.RC3 */
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);
/** Makes a notify. @optional @since 8.5.0 */
aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);
/** Destroys a notify. @optional @since 8.5.0 */
aclError aclrtDestroyNotify(aclrtNotify notify);
/** Sets a notify when the stream gets there. @optional @since 8.5.0 */
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
/** The stream waits for a notify for at most timeout milliseconds (0: for ever), then clears it.
 * @optional @since 8.5.0 */
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
/** Number of a notify. @optional @since 8.5.0 */
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId);
/** Key by which another process imports a notify. @optional @since 8.5.0 */
aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags);
/** Imports another process's notify. @optional @since 8.5.0 */
aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags);
/** Lists the processes that may import a notify. @optional @since 8.5.0 */
aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num);
/** The stream writes a 64-bit word of device memory. @since 8.5.0 */
aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);
/** The stream waits until a 64-bit word of device memory fits: ACL_STREAM_WAIT_VALUE. @since 8.5.0 */
aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);
/** The stream calls a function on a host thread. @since 8.5.0 */
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

/* ------------------------------------------------------------------------------------------------ memory */

/** Allocates device memory. @since 8.0.RC3 */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
/** Allocates device memory, aligned to 32 bytes in address and size. @optional @since 8.0.RC3 */
aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
/** Allocates device memory with attributes. @optional @since 8.5.0 */
aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg);
/** Frees device memory. @since 8.0.RC3 */
aclError aclrtFree(void *devPtr);
/** Allocates pinned host memory. @since 8.0.RC3 */
aclError aclrtMallocHost(void **hostPtr, size_t size);
/** Frees pinned host memory. @since 8.0.RC3 */
aclError aclrtFreeHost(void *hostPtr);
/** Gives a device address to host memory. @since 8.5.0 */
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr);
/** Pins host memory or gives it a device address: ACL_HOST_REG flags. @optional @since 8.5.0 */
aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);
/** Device address of memory registered by aclrtHostRegisterV2. @optional @since 8.5.0 */
aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);
/** Takes the device address away again. @since 8.5.0 */
aclError aclrtHostUnregister(void *ptr);
/** Copies count bytes and waits; destMax is what the target holds. @since 8.0.RC3 */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind);
/** Copies in the stream's order. Host memory must be pinned. @since 8.0.RC3 */
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream);
/** Several copies at once. @optional @since 8.3.RC1 */
aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex);
/** Sets count bytes to the low byte of value and waits. @since 8.0.RC3 */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);
/** Sets bytes in the stream's order. @since 8.0.RC3 */
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream);
/** Combines an array into another by a device's DMA engine. @optional @since 8.5.0 */
aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
                          aclrtStream stream, void *reserve);
/** Operates on the device's caches. @optional @since 8.0.RC3 */
aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream);
/** What the runtime knows about an address. @since 8.5.0 */
aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);
/** Start and size of the allocation that an address is in. @optional @since 9.0.0 */
aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize);
/** Free and total bytes of one kind of memory. @since 8.0.RC3 */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/* ------------------------------------------------------------------------------------------------ mapped memory */

/** Reserves addresses without memory. alignment is 0; expectPtr is NULL or a wish. @since 8.0.RC3 */
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags);
/** Gives reserved addresses back. @since 8.0.RC3 */
aclError aclrtReleaseMemAddress(void *virPtr);
/** Allocates physical memory; size is a multiple of the granularity. @since 8.0.RC3 */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags);
/** Frees physical memory, own or imported. It goes when the last importer has freed it. @since 8.0.RC3 */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);
/** Maps all of a handle's memory at reserved addresses; offset and flags are 0. One reservation never holds memory of
 * two owners. @since 8.0.RC3 */
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags);
/** Unmaps what aclrtMapMem mapped there. @since 8.0.RC3 */
aclError aclrtUnmapMem(void *virPtr);
/** Sets what locations may do with a mapped range. @since 8.5.0 */
aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count);
/** What a location may do with a mapped range. @optional @since 8.5.0 */
aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag);
/** Unit of physical allocations. @since 8.5.0 */
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
                                          size_t *granularity);
/** Handle of the physical memory behind an address; counts as one more user. @optional @since 8.5.0 */
aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle);
/** Makes physical memory importable by listed processes of this server. Once a handle. @since 8.5.0 */
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
                                         uint64_t *shareableHandle);
/** Likewise, also between servers: shareableHandle points to a uint64_t or an aclrtMemFabricHandle. @since 8.5.0 */
aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType shareType,
                                           void *shareableHandle);
/** Imports another process's physical memory. @since 8.5.0 */
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle);
/** Likewise, also from another server. @since 8.5.0 */
aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle *handle);
/** Lists the processes that may import. @since 8.5.0 */
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum);
/** Likewise, for handles of aclrtMemExportToShareableHandleV2. @since 8.5.0 */
aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid,
                                           size_t pidNum);
/** This process's number as the device's driver knows it, also from inside a container. @since 8.5.0 */
aclError aclrtDeviceGetBareTgid(int32_t *pid);

/* ------------------------------------------------------------------------------------------------ shared buffers */

/** Key (65 bytes with its end) by which another process imports a buffer of aclrtMalloc. @since 8.5.0 */
aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags);
/** Ends the sharing or the import of a buffer. @since 8.5.0 */
aclError aclrtIpcMemClose(const char *key);
/** Imports another process's buffer. @since 8.5.0 */
aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags);
/** Lists the processes that may import a buffer. @since 8.5.0 */
aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num);
/** Sets the link by which a shared buffer is reached. @optional @since 8.5.0 */
aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr);
/** Lists the processes of other servers that may import a buffer. @optional @since 8.5.0 */
aclError aclrtIpcMemImportPidInterServer(const char *key, aclrtServerPid *serverPids, size_t num);
/** Can one device reach another's memory: 1 or 0. @since 8.0.RC3 */
aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId);
/** Lets the current device reach another's memory. flags is 0. @since 8.0.RC3 */
aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
/** Takes that back. @since 8.0.RC3 */
aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);
/** Is access between two devices enabled: 1 or 0. @optional @since 8.5.0 */
aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status);

/* ------------------------------------------------------------------------------------------------ kernels */

/** Loads a kernel object from a file. @since 8.5.0 */
aclError aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *options, aclrtBinHandle *binHandle);
/** Loads a kernel object from memory. @since 8.5.0 */
aclError aclrtBinaryLoadFromData(const void *data, size_t length, const aclrtBinaryLoadOptions *options,
                                 aclrtBinHandle *binHandle);
/** Unloads a kernel object. @since 8.5.0 */
aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle);
/** Finds a kernel by its name (mangled for C++) without the suffix of a core kind. @since 8.5.0 */
aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName, aclrtFuncHandle *funcHandle);
/** Finds a kernel by its number. @optional @since 8.5.0 */
aclError aclrtBinaryGetFunctionByEntry(aclrtBinHandle binHandle, uint64_t funcEntry, aclrtFuncHandle *funcHandle);
/** Name of a kernel. @optional @since 8.5.0 */
aclError aclrtGetFunctionName(aclrtFuncHandle funcHandle, uint32_t maxLen, char *name);
/** Starts a list of arguments. @since 8.5.0 */
aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle);
/** Adds one argument by value. @since 8.5.0 */
aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
                               aclrtParamHandle *paramHandle);
/** Closes a list of arguments. @since 8.5.0 */
aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle);
/** Launches a kernel with a list of arguments. cfg may be NULL, reserve is NULL. @since 8.5.0 */
aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle, void *reserve);
/** Launches a kernel with arguments packed like a C struct in host memory, which may be reused at once. @since 8.5.0 */
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
                                       aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum);
/** Launches a kernel with packed arguments that are already in device memory. @optional @since 8.5.0 */
aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                           aclrtStream stream);
/** Likewise, with attributes. @optional @since 8.5.0 */
aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                             aclrtLaunchKernelCfg *cfg, aclrtStream stream);
/** Address that kernels need to meet on A2 and A3 (the FFTS base). @since 8.5.0 */
aclError aclrtGetHardwareSyncAddr(void **addr);

#ifdef __cplusplus
}
#endif

#endif /* NPUSHMEM_FFI_ACL_H */
