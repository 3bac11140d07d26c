//! The layouts, values and tables of the vendor boundary, against the facts that they were written from: the sizes
//! measured with the vendor's compilers for ACL, and those that public HCCP callers rely on.

use std::mem::{align_of, offset_of, size_of};

use npushmem_ffi::acl::*;
use npushmem_ffi::hccp::*;

macro_rules! layout {
    ($type:ty, $size:expr, $align:expr $(, $($field:ident).+ @ $offset:expr)* $(,)?) => {
        assert_eq!(size_of::<$type>(), $size, concat!("size of ", stringify!($type)));
        assert_eq!(align_of::<$type>(), $align, concat!("alignment of ", stringify!($type)));
        $(assert_eq!(
            offset_of!($type, $($field).+), $offset,
            concat!("offset of ", stringify!($type), ".", stringify!($($field).+))
        );)*
    };
}

#[test]
fn acl_structs_have_the_vendors_layout() {
    layout!(aclrtMemLocation, 8, 4, id @ 0, type_ @ 4);
    layout!(aclrtPhysicalMemProp, 32, 8, handleType @ 0, allocationType @ 4, memAttr @ 8, location @ 12, reserve @ 24);
    layout!(aclrtMemAccessDesc, 24, 4, flags @ 0, location @ 4, rsv @ 12);
    layout!(aclrtPtrAttributes, 28, 4, location @ 0, pageSize @ 8, rsv @ 12);
    layout!(aclrtMemFabricHandle, 128, 1);
    layout!(aclrtBinaryLoadOption, 20, 4, type_ @ 0, value @ 4);
    layout!(aclrtBinaryLoadOptions, 16, 8, options @ 0, numOpt @ 8);
    layout!(aclrtLaunchKernelAttr, 20, 4, id @ 0, value @ 4);
    layout!(aclrtLaunchKernelCfg, 16, 8, attrs @ 0, numAttrs @ 8);
    layout!(aclrtPlaceHolderInfo, 8, 4, addrOffset @ 0, dataOffset @ 4);
    layout!(aclrtServerPid, 24, 8, sdid @ 0, pid @ 8, num @ 16);
    layout!(aclrtMemcpyBatchAttr, 32, 4, dstLoc @ 0, srcLoc @ 8, rsv @ 16);
    layout!(aclrtMallocConfig, 16, 8, attrs @ 0, numAttrs @ 8);
    layout!(aclrtStreamAttrValue, 16, 8);
}

#[test]
fn hccp_structs_have_the_layout_that_public_callers_rely_on() {
    layout!(HccpRaInitConfig, 12, 4, phyId @ 0, nicPosition @ 4, hdcType @ 8);
    layout!(HccpRaInitBlock, 32, 4, config @ 0, reserved @ 12);
    layout!(HccpRdevInitInfo, 12, 4, mode @ 0, notifyType @ 4, enabled910aLite @ 8, disabledLiteThread @ 9,
        enabled2mbLite @ 10);
    layout!(HccpIpAddr, 16, 4);
    layout!(HccpRdev, 24, 4, phyId @ 0, family @ 4, localIp @ 8);
    layout!(HccpRaGetIfAttr, 12, 4, phyId @ 0, nicPosition @ 4, isAll @ 8);
    layout!(HccpInterfaceInfo, 284, 4, family @ 0, scopeId @ 4, ifaddr @ 8, ifname @ 28);
    layout!(HccpMrInfo, 32, 8, addr @ 0, size @ 8, access @ 16, lkey @ 20, rkey @ 24);
    layout!(HccpSocketConnectInfo, 224, 8, handle @ 0, remoteIp @ 8, port @ 24, tag @ 26);
    layout!(HccpSocketCloseInfo, 24, 8, handle @ 0, fd @ 8, linger @ 16);
    layout!(HccpSocketListenInfo, 24, 8, handle @ 0, port @ 8, phase @ 12, err @ 16);
    layout!(HccpSocketInfo, 232, 8, handle @ 0, fd @ 8, remoteIp @ 16, status @ 32, tag @ 36);
    layout!(HccpSocketWhiteListInfo, 212, 4, remoteIp @ 0, connLimit @ 16, tag @ 20);
    layout!(QosAttr, 8, 1, tc @ 0, sl @ 1);
    layout!(ibv_qp_init_attr, 64, 8, cap @ 32, qp_type @ 52, sq_sig_all @ 56);
    layout!(HccpQpExtAttrs, 224, 8, qpMode @ 0, cqAttr @ 4, cqAttr.recvCqDepth @ 8, qp_attr @ 24, qp_attr.cap @ 56,
        qp_attr.cap.max_inline_data @ 72, qp_attr.qp_type @ 76, qp_attr.sq_sig_all @ 80, version @ 88, mem_align @ 92,
        udp_sport @ 96, data_plane_flag @ 100, reserved @ 104);
    layout!(ai_data_plane_wq, 88, 8, wqn @ 0, buf_addr @ 8, wqebb_size @ 16, depth @ 20, head_addr @ 24,
        tail_addr @ 32, swdb_addr @ 40, db_reg @ 48, reserved @ 56);
    layout!(ai_data_plane_cq, 64, 8, cqn @ 0, buf_addr @ 8, cqe_size @ 16, depth @ 20, head_addr @ 24,
        tail_addr @ 32, swdb_addr @ 40, db_reg @ 48, reserved @ 56);
    layout!(ai_data_plane_info, 336, 8, sq @ 0, rq @ 88, scq @ 176, rcq @ 240, reserved @ 304);
    layout!(HccpAiQpInfo, 368, 8, aiQpAddr @ 0, sqIndex @ 8, dbIndex @ 12, ai_scq_addr @ 16, ai_rcq_addr @ 24,
        data_plane_info @ 32);
}

#[test]
fn constants_have_the_type_of_the_parameter_they_are_for() {
    let _: aclError = ACL_ERROR_RT_PARAM_INVALID;
    let _: u64 = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
    let _: u32 = ACL_STREAM_FAST_SYNC;
    assert_eq!(ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE.to_be_bytes(), *b"AARF");
    assert_eq!(ACL_DT_UNDEFINED, -1);
    assert_eq!(ACL_MEM_P2P_HUGE1G, 17);
    assert_eq!(IPC_MEM_KEY_SIZE, 65);
    assert_eq!(
        HCCP_SOCKET_TAG_SIZE,
        size_of::<HccpSocketWhiteListInfo>() - 20
    );
}

#[test]
fn hccp_has_the_symbols_in_the_order_and_under_the_names_that_libra_has_them() {
    use npushmem_ffi::hccp::SYMBOLS;
    let required: Vec<_> = SYMBOLS.iter().filter(|symbol| symbol.required).collect();
    assert_eq!(required.len(), 24);
    let find = |name| {
        SYMBOLS
            .iter()
            .find(|symbol| symbol.name == name)
            .unwrap_or_else(|| panic!("{name} is missing"))
    };
    assert_eq!(find("ra_init").alternative, Some("RaInit"));
    assert_eq!(find("ra_rdev_init_v2").alternative, Some("RaRdevInitV2"));
    assert_eq!(find("ra_ai_qp_create").alternative, Some("RaAiQpCreate"));
    assert_eq!(find("ra_get_ifaddrs").alternative, Some("RaGetIfaddrs"));
    assert_eq!(find("TsdOpen").alternative, None);
    assert_eq!(find("TsdOpen").library, "libtsdclient.so");
    assert_eq!(required[0].name, "ra_socket_init");
    assert_eq!(required[22].name, "ra_set_qp_attr_qos");
    assert_eq!(required[23].name, "TsdOpen");
}

#[test]
fn every_acl_function_says_which_cann_version_has_it() {
    for symbol in npushmem_ffi::acl::SYMBOLS {
        assert!(
            symbol.since.is_some(),
            "{} has no @since in include/acl.h",
            symbol.name
        );
    }
}

#[test]
fn the_declaration_macro_lists_the_required_functions_with_their_types() {
    macro_rules! names {
        ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {{
            // The table's field has the type that the macro spells.
            $(let _ = |table: &AclFns| -> unsafe extern "C" fn($($type),*) -> $result { table.$name };)*
            [$(stringify!($name)),*]
        }};
    }
    let names = npushmem_ffi::for_each_acl_function!(names);
    let required: Vec<_> = npushmem_ffi::acl::SYMBOLS
        .iter()
        .filter(|symbol| symbol.required)
        .map(|symbol| symbol.name)
        .collect();
    assert_eq!(names.as_slice(), required.as_slice());
}
