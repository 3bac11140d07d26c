//! Moves bytes between this process's memory and a peer's, which is mapped here.
//!
//! Not a check. A word of its own size is moved by one instruction, so that an aligned flag never appears in halves; everything longer goes
//! through the C library's memcpy, whose vector code and thresholds are chosen for the machine it runs on.

/// Longest copy that is done here, bytes: four vectors of 16.
const SMALL: usize = 64;

/// Copies `bytes` from `from` to `to`. An 8-byte copy is inlined; it is what programs with small messages send most.
///
/// # Safety
/// Both ranges are mapped and do not overlap (or are the same).
#[inline(always)]
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    if bytes == 8 {
        // SAFETY: by this function's contract.
        unsafe { word::<u64>(to, from) }
    } else {
        // SAFETY: by this function's contract.
        unsafe { other(to, from, bytes) }
    }
}

/// One access of `T`, at any alignment.
#[inline(always)]
unsafe fn word<T: Copy>(to: *mut u8, from: *const u8) {
    // SAFETY: by the callers' contract.
    unsafe {
        to.cast::<T>()
            .write_unaligned(from.cast::<T>().read_unaligned())
    }
}

/// The first and the last `T` of a range of one to two of them.
#[inline(always)]
unsafe fn ends<T: Copy>(to: *mut u8, from: *const u8, bytes: usize) {
    let last = bytes - size_of::<T>();
    // SAFETY: size_of T <= bytes. Both are read before any is written.
    unsafe {
        let a = from.cast::<T>().read_unaligned();
        let b = from.add(last).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(a);
        to.add(last).cast::<T>().write_unaligned(b);
    }
}

/// 16 bytes, moved by one vector instruction.
type Vector = [u64; 2];

#[inline(never)]
unsafe extern "C" fn other(to: *mut u8, from: *const u8, bytes: usize) {
    if bytes > SMALL {
        // SAFETY: by the callers' contract. The C library's: it may be given equal pointers.
        unsafe { libc::memcpy(to.cast(), from.cast(), bytes) };
        return;
    }
    // SAFETY: by the callers' contract; each arm covers its lengths.
    unsafe {
        match bytes {
            33.. => {
                let a = from.cast::<[Vector; 2]>().read_unaligned();
                let b = from.add(bytes - 32).cast::<[Vector; 2]>().read_unaligned();
                to.cast::<[Vector; 2]>().write_unaligned(a);
                to.add(bytes - 32).cast::<[Vector; 2]>().write_unaligned(b);
            }
            16.. => ends::<Vector>(to, from, bytes),
            4 => word::<u32>(to, from),
            9.. => ends::<u64>(to, from, bytes),
            8 => word::<u64>(to, from),
            5.. => ends::<u32>(to, from, bytes),
            2 => word::<u16>(to, from),
            3 => {
                word::<u16>(to, from);
                word::<u8>(to.add(2), from.add(2));
            }
            1 => word::<u8>(to, from),
            _ => {}
        }
    }
}
