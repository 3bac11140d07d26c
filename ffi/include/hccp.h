/*
 * npushmem: what we call of HCCP (libra.so, and TsdOpen of libtsdclient.so), declared in our own words.
 *
 * HCCP makes the queue pairs of the NIC in the die that a kernel drives by itself. The vendor publishes no header of
 * it for this use; names, layouts and values are the facts that public programs rely on (CANN SHMEM, memfabric), and
 * the tests of this crate hold the layouts. Sizes are for LP64.
 *
 * Readers: ffi/build.rs, which makes from it the Rust types and the function table of npushmem_ffi::hccp. Each ra_*
 * symbol is looked up under the name below, then in CamelCase (ra_init, RaInit): libraries differ. The tag @library
 * names a function's library where it is not libra.so; @optional and @since are as in acl.h.
 *
 * Functions return 0 or an error number unless they say otherwise.
 */
#ifndef NPUSHMEM_FFI_HCCP_H
#define NPUSHMEM_FFI_HCCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HCCP_SOCKET_TAG_SIZE 192 /**< Bytes of a connection's tag, with its end. */
#define HCCP_INTERFACE_NAME_SIZE 256 /**< Bytes of an interface's name, with its end. */
#define HCCP_HDC_TYPE_RDMA_V2 6 /**< HccpRaInitConfig.hdcType for the NIC's queue pairs. */
#define HCCP_CQ_CUSTOM 1U /**< HccpQpExtAttrs.data_plane_flag: the caller polls the completion queue. */
#define HCCP_QP_EXT_VERSION 1 /**< HccpQpExtAttrs.version. */
#define HCCP_MEM_ALIGN_4K 0 /**< HccpQpExtAttrs.mem_align: rings in 4 KiB pages (1 means the same). */
#define HCCP_MEM_ALIGN_2M 2 /**< HccpQpExtAttrs.mem_align: rings in 2 MiB pages. */
#define HCCP_SOCKET_ROLE_SERVER 0U /**< ra_get_sockets: connections that came in. */
#define HCCP_SOCKET_ROLE_CLIENT 1U /**< ra_get_sockets: connections that went out. */

/** Where HCCP runs. */
typedef enum HccpNetworkMode {
    NETWORK_PEER_ONLINE = 0, /**< On the host, for a NIC of the host. */
    NETWORK_OFFLINE = 1, /**< On the device, for the NIC in the die. */
    NETWORK_ONLINE = 2, /**< On the device, started from there. */
} HccpNetworkMode;

/** What memory a remote NIC may do things with. Bits. */
typedef enum HccpMrAccessFlags {
    RA_ACCESS_LOCAL_WRITE = 1, /**< The own NIC writes (results of READ and atomics). */
    RA_ACCESS_REMOTE_WRITE = 2, /**< Others WRITE. */
    RA_ACCESS_REMOTE_READ = 4, /**< Others READ. */
    RA_ACCESS_REMOTE_ATOMIC = 8, /**< Others run atomics. Only newer versions of the vendor's enum have it. */
    RA_ACCESS_REDUCE = 0x100, /**< Others WRITE with a reduction. */
} HccpMrAccessFlags;

/** How the NIC tells of completions. */
typedef enum HccpNotifyType {
    HCCP_NO_USE = 0, /**< Not at all. */
    HCCP_NOTIFY = 1, /**< By notifies. */
    HCCP_EVENTID = 2, /**< By events. */
} HccpNotifyType;

/** State of a connection. */
typedef enum HccpSocketStatus {
    HCCP_SOCKET_DISCONNECTED = 0, /**< Not connected. */
    HCCP_SOCKET_CONNECTED = 1, /**< Connected. */
    HCCP_SOCKET_TIMEOUT = 2, /**< Gave up. */
    HCCP_SOCKET_CONNECTING = 3, /**< On the way. */
} HccpSocketStatus;

/** State of a queue pair. */
typedef enum HccpQpStatus {
    HCCP_QP_DISCONNECTED = 0, /**< Not connected. */
    HCCP_QP_CONNECTED = 1, /**< Ready to send and receive. */
    HCCP_QP_TIMEOUT = 2, /**< Gave up. */
    HCCP_QP_CONNECTING = 3, /**< On the way. */
    HCCP_QP_FD_CLOSED = 4, /**< Its socket went away. */
    HCCP_QP_PAUSED = 5, /**< Held. */
} HccpQpStatus;

/** Transport of a queue pair. */
typedef enum ibv_qp_type {
    IBV_QPT_RC = 2, /**< Reliable connection. */
    IBV_QPT_UC = 3, /**< Unreliable connection. */
    IBV_QPT_UD = 4, /**< Datagrams. */
} ibv_qp_type;

/** How ra_init starts HCCP. Later libraries read a fourth field behind it: pass an HccpRaInitBlock. */
typedef struct HccpRaInitConfig {
    uint32_t phyId; /**< Physical device number. */
    uint32_t nicPosition; /**< HccpNetworkMode. */
    int32_t hdcType; /**< Channel between host and device: HCCP_HDC_TYPE_RDMA_V2. */
} HccpRaInitConfig;

/** An HccpRaInitConfig with zeros behind it, for libraries that read more fields: enough for all known ones. */
typedef struct HccpRaInitBlock {
    HccpRaInitConfig config; /**< What ra_init takes the address of. */
    uint32_t reserved[5]; /**< Zero. */
} HccpRaInitBlock;

/** How ra_rdev_init_v2 opens the NIC. */
typedef struct HccpRdevInitInfo {
    int32_t mode; /**< HccpNetworkMode. */
    uint32_t notifyType; /**< HccpNotifyType. */
    bool enabled910aLite; /**< Data plane for the 910A. */
    bool disabledLiteThread; /**< No polling thread for that data plane. */
    bool enabled2mbLite; /**< Data plane in 2 MiB pages, for 910A and 910B. */
} HccpRdevInitInfo;

/** An address in network byte order. */
typedef union HccpIpAddr {
    uint8_t v4[4]; /**< IPv4. */
    uint8_t v6[16]; /**< IPv6. */
    uint32_t words[4]; /**< Gives the union its alignment. */
} HccpIpAddr;

/** A NIC. */
typedef struct HccpRdev {
    uint32_t phyId; /**< Physical device number. */
    int32_t family; /**< AF_INET or AF_INET6. */
    HccpIpAddr localIp; /**< Its address. */
} HccpRdev;

/** Whose interfaces to list. */
typedef struct HccpRaGetIfAttr {
    uint32_t phyId; /**< Physical device number. */
    uint32_t nicPosition; /**< HccpNetworkMode. */
    bool isAll; /**< All NICs instead of the device's own one. */
} HccpRaGetIfAttr;

/** Address and mask of an interface. */
typedef struct HccpIfaddrInfo {
    HccpIpAddr ip; /**< Address. */
    uint8_t mask[4]; /**< IPv4 mask. */
} HccpIfaddrInfo;

/** An interface. */
typedef struct HccpInterfaceInfo {
    int32_t family; /**< AF_INET or AF_INET6. */
    int32_t scopeId; /**< Scope of an IPv6 address. */
    HccpIfaddrInfo ifaddr; /**< Address and mask. */
    char ifname[HCCP_INTERFACE_NAME_SIZE]; /**< Name. */
} HccpInterfaceInfo;

/** A connection to make. The layout is the one that CANN SHMEM uses; other public sources have a 32-bit port and the tag
 * two bytes later (same size). Not verified on hardware. */
typedef struct HccpSocketConnectInfo {
    void *handle; /**< From ra_socket_init. */
    HccpIpAddr remoteIp; /**< Whom to call. */
    uint16_t port; /**< Its port, in host byte order. */
    char tag[HCCP_SOCKET_TAG_SIZE]; /**< Both sides give the same text. */
} HccpSocketConnectInfo;

/** A connection to close. */
typedef struct HccpSocketCloseInfo {
    void *handle; /**< From ra_socket_init. */
    void *fd; /**< The connection. */
    int32_t linger; /**< 0: wait for what is under way. */
} HccpSocketCloseInfo;

/** A port to listen on. */
typedef struct HccpSocketListenInfo {
    void *handle; /**< From ra_socket_init. */
    uint32_t port; /**< Port, in host byte order. */
    uint32_t phase; /**< Written by HCCP: how far it got. */
    uint32_t err; /**< Written by HCCP: an errno. */
} HccpSocketListenInfo;

/** A connection looked for by its tag. */
typedef struct HccpSocketInfo {
    void *handle; /**< From ra_socket_init. */
    void *fd; /**< Written by HCCP: the connection. */
    HccpIpAddr remoteIp; /**< The other side. */
    int32_t status; /**< Written by HCCP: HccpSocketStatus. */
    char tag[HCCP_SOCKET_TAG_SIZE]; /**< The connection's tag. */
} HccpSocketInfo;

/** Who may connect. */
typedef struct HccpSocketWhiteListInfo {
    HccpIpAddr remoteIp; /**< The other side. */
    uint32_t connLimit; /**< How many connections. */
    char tag[HCCP_SOCKET_TAG_SIZE]; /**< Their tag. */
} HccpSocketWhiteListInfo;

/** A memory region. */
typedef struct HccpMrInfo {
    void *addr; /**< Start. */
    uint64_t size; /**< Bytes. */
    int32_t access; /**< HccpMrAccessFlags. */
    uint32_t lkey; /**< Written by HCCP: key for the own NIC. */
    uint32_t rkey; /**< Written by HCCP: key for others. */
} HccpMrInfo;

/** Service of a queue pair. */
typedef struct QosAttr {
    uint8_t tc; /**< Traffic class, a multiple of 4. */
    uint8_t sl; /**< Service level, 0 to 7. */
    uint8_t reserved[6]; /**< Zero. */
} QosAttr;

/** Completion queues of a queue pair. */
typedef struct HccpCqExtAttr {
    int32_t sendCqDepth; /**< Entries for sends. */
    int32_t recvCqDepth; /**< Entries for receives. */
    int32_t sendCqCompVector; /**< Interrupt for sends. */
    int32_t recvCqCompVector; /**< Interrupt for receives. */
} HccpCqExtAttr;

/** Sizes of a queue pair, as in libibverbs. */
typedef struct ibv_qp_cap {
    uint32_t max_send_wr; /**< Send requests. */
    uint32_t max_recv_wr; /**< Receive requests. */
    uint32_t max_send_sge; /**< Pieces of a send. */
    uint32_t max_recv_sge; /**< Pieces of a receive. */
    uint32_t max_inline_data; /**< Bytes inside of a request. */
} ibv_qp_cap;

/** What queue pair to make, as in libibverbs. */
typedef struct ibv_qp_init_attr {
    void *qp_context; /**< The caller's. */
    void *send_cq; /**< NULL: HCCP makes it. */
    void *recv_cq; /**< NULL: HCCP makes it. */
    void *srq; /**< NULL: none. */
    ibv_qp_cap cap; /**< Sizes. */
    ibv_qp_type qp_type; /**< Transport. */
    int32_t sq_sig_all; /**< 1: every send completes visibly. */
} ibv_qp_init_attr;

/** What queue pair ra_ai_qp_create makes. */
typedef struct HccpQpExtAttrs {
    int32_t qpMode; /**< HccpNetworkMode. */
    HccpCqExtAttr cqAttr; /**< Completion queues. */
    ibv_qp_init_attr qp_attr; /**< Queue pair. */
    int32_t version; /**< HCCP_QP_EXT_VERSION. */
    int32_t mem_align; /**< Pages of the rings: HCCP_MEM_ALIGN. */
    uint32_t udp_sport; /**< UDP source port, 0: HCCP chooses. */
    uint32_t data_plane_flag; /**< HCCP_CQ_CUSTOM or 0. */
    uint32_t reserved[29]; /**< Zero. */
} HccpQpExtAttrs;

/** A ring of work requests, as a kernel sees it. Addresses are valid on the AI core. */
typedef struct ai_data_plane_wq {
    uint32_t wqn; /**< Queue pair number. */
    uint64_t buf_addr; /**< First entry. */
    uint32_t wqebb_size; /**< Bytes of an entry. */
    uint32_t depth; /**< Entries. */
    uint64_t head_addr; /**< Address of the u32 producer counter. */
    uint64_t tail_addr; /**< Address of the u32 consumer counter. */
    uint64_t swdb_addr; /**< Doorbell record in memory. */
    uint64_t db_reg; /**< Doorbell register. */
    uint32_t reserved[8]; /**< Unused. */
} ai_data_plane_wq;

/** A ring of completions, as a kernel sees it. */
typedef struct ai_data_plane_cq {
    uint32_t cqn; /**< Completion queue number. */
    uint64_t buf_addr; /**< First entry. */
    uint32_t cqe_size; /**< Bytes of an entry. */
    uint32_t depth; /**< Entries. */
    uint64_t head_addr; /**< Address of the u32 producer counter. */
    uint64_t tail_addr; /**< Address of the u32 consumer counter. */
    uint64_t swdb_addr; /**< Doorbell record in memory. */
    uint64_t db_reg; /**< Doorbell register. */
    uint32_t reserved[2]; /**< Unused. */
} ai_data_plane_cq;

/** The four rings of a queue pair. */
typedef struct ai_data_plane_info {
    ai_data_plane_wq sq; /**< Send requests. */
    ai_data_plane_wq rq; /**< Receive requests. */
    ai_data_plane_cq scq; /**< Completions of sends. */
    ai_data_plane_cq rcq; /**< Completions of receives. */
    uint32_t reserved[8]; /**< Unused. */
} ai_data_plane_info;

/** What ra_ai_qp_create tells about the queue pair it made. */
typedef struct HccpAiQpInfo {
    uint64_t aiQpAddr; /**< The device's queue pair object. */
    uint32_t sqIndex; /**< Number of the send queue. */
    uint32_t dbIndex; /**< Number of the doorbell. */
    uint64_t ai_scq_addr; /**< The device's completion queue object for sends. */
    uint64_t ai_rcq_addr; /**< The device's completion queue object for receives. */
    ai_data_plane_info data_plane_info; /**< Its rings. */
} HccpAiQpInfo;

/** Opens a socket layer on a NIC. */
int ra_socket_init(HccpNetworkMode mode, HccpRdev rdev, void **socket_handle);
/** Starts HCCP for a device. */
int ra_init(const HccpRaInitConfig *config);
/** Closes a socket layer. */
int ra_socket_deinit(void *socket_handle);
/** Opens a NIC. */
int ra_rdev_init_v2(HccpRdevInitInfo init_info, HccpRdev rdev, void **rdma_handle);
/** The NIC, if this process has already opened it. */
int ra_rdev_get_handle(uint32_t phy_id, void **rdma_handle);
/** Starts to connect. */
int ra_socket_batch_connect(HccpSocketConnectInfo conn[], uint32_t num);
/** Closes connections. */
int ra_socket_batch_close(HccpSocketCloseInfo conn[], uint32_t num);
/** Listens on ports. */
int ra_socket_listen_start(HccpSocketListenInfo conn[], uint32_t num);
/** Stops to listen. */
int ra_socket_listen_stop(HccpSocketListenInfo conn[], uint32_t num);
/** Finds established connections by their tags; got is how many were. */
int ra_get_sockets(uint32_t role, HccpSocketInfo conn[], uint32_t num, uint32_t *got);
/** Number of interfaces. */
int ra_get_ifnum(const HccpRaGetIfAttr *attr, uint32_t *num);
/** Interfaces; num is the room on entry and their number on return. */
int ra_get_ifaddrs(const HccpRaGetIfAttr *attr, HccpInterfaceInfo infos[], uint32_t *num);
/** Lets others connect. */
int ra_socket_white_list_add(void *socket_handle, const HccpSocketWhiteListInfo white_list[], uint32_t num);
/** Takes that back. */
int ra_socket_white_list_del(void *socket_handle, const HccpSocketWhiteListInfo white_list[], uint32_t num);
/** Makes a queue pair that the host drives. */
int ra_qp_create(void *rdma_handle, int flag, int qp_mode, void **qp_handle);
/** Makes a queue pair that a kernel drives. */
int ra_ai_qp_create(void *rdma_handle, const HccpQpExtAttrs *attrs, HccpAiQpInfo *info, void **qp_handle);
/** Destroys a queue pair. */
int ra_qp_destroy(void *qp_handle);
/** State of a queue pair: HccpQpStatus. */
int ra_get_qp_status(void *qp_handle, int *status);
/** Starts to connect a queue pair over an established connection; HCCP takes it to RTS. */
int ra_qp_connect_async(void *qp_handle, const void *fd_handle);
/** Registers memory with the NIC and writes its keys. */
int ra_register_mr(const void *rdma_handle, HccpMrInfo *info, void **mr_handle);
/** Takes a registration back. */
int ra_deregister_mr(const void *rdma_handle, void *mr_handle);
/** Makes registered memory usable on one queue pair. */
int ra_mr_reg(void *qp_handle, HccpMrInfo *info);
/** Sets the service of a queue pair, before it connects. */
int ra_set_qp_attr_qos(void *qp_handle, QosAttr *attr);
/** Closes a NIC; notify_type as it was opened with. @optional */
int ra_rdev_deinit(void *rdma_handle, uint32_t notify_type);
/** Ends HCCP for a device. @optional */
int ra_deinit(const HccpRaInitConfig *config);
/** Takes ra_mr_reg back. @optional */
int ra_mr_dereg(void *qp_handle, HccpMrInfo *info);
/** Starts the device's side of HCCP. Returns 0 or a number. @library libtsdclient.so */
uint32_t TsdOpen(uint32_t logic_device_id, uint32_t rank_size);

#ifdef __cplusplus
}
#endif

#endif /* NPUSHMEM_FFI_HCCP_H */
