//! Streams, events, words of memory in a stream's order, calls of host functions.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use npushmem_ffi::acl;

use super::{put, read};
use crate::device;
use crate::error::{entries, fail, invalid, Outcome};
use crate::event::{Event, EVENTS};
use crate::stream::{self, Stream, STREAMS};
use crate::task::{check_word, Task};

/// Stream flags that mean something here or do no harm.
const STREAM_FLAGS: u32 = acl::ACL_STREAM_FAST_LAUNCH
    | acl::ACL_STREAM_FAST_SYNC
    | acl::ACL_STREAM_PERSISTENT
    | acl::ACL_STREAM_HUGE
    | acl::ACL_STREAM_CPU_SCHEDULE
    | acl::ACL_STREAM_DEVICE_USE_ONLY;
/// Largest priority number (documented: 0 to 7).
const MAX_PRIORITY: u32 = 7;
/// Event flags that the emulator has.
const EVENT_FLAGS: u32 =
    acl::ACL_EVENT_SYNC | acl::ACL_EVENT_CAPTURE_STREAM_PROGRESS | acl::ACL_EVENT_TIME_LINE;

fn create(stream: *mut acl::aclrtStream) -> Outcome {
    if stream.is_null() {
        return Err(invalid("stream is NULL"));
    }
    let context = device::current()?;
    put(stream, "stream", STREAMS.insert(Stream::new(&context)))
}

fn remove(stream: acl::aclrtStream) -> Outcome<Arc<Stream>> {
    if stream.is_null() {
        return Err(invalid(
            "NULL is the default stream, which lives as long as its context",
        ));
    }
    STREAMS.remove(stream)
}

entries! {
    fn aclrtCreateStream(stream: *mut acl::aclrtStream) {
        create(stream)
    }

    fn aclrtCreateStreamWithConfig(stream: *mut acl::aclrtStream, priority: u32, flag: u32) {
        if priority > MAX_PRIORITY {
            return Err(invalid(format!("priority {priority}: 0 to {MAX_PRIORITY} are wanted")));
        }
        if flag & !STREAM_FLAGS != 0 {
            return Err(invalid(format!("flag {flag:#x} has bits that no stream has; known are {STREAM_FLAGS:#x}")));
        }
        create(stream)
    }

    fn aclrtDestroyStream(stream: acl::aclrtStream) {
        let stream = remove(stream)?;
        // The error of a task belongs to a synchronisation; here nobody asks for it.
        let _ = stream.synchronize(None);
        stream.close();
        Ok(())
    }

    fn aclrtDestroyStreamForce(stream: acl::aclrtStream) {
        remove(stream)?.end_by_force();
        Ok(())
    }

    fn aclrtSynchronizeStream(stream: acl::aclrtStream) {
        stream::get(stream)?.synchronize(None)
    }

    fn aclrtSynchronizeStreamWithTimeout(stream: acl::aclrtStream, timeout: i32) {
        let limit = match timeout {
            -1 => None,
            0.. => Some(Duration::from_millis(timeout as u64)),
            _ => return Err(invalid(format!("timeout {timeout}: milliseconds, or -1 for no limit, are wanted"))),
        };
        stream::get(stream)?.synchronize(limit)
    }

    fn aclrtSynchronizeDevice() {
        stream::synchronize_all(&device::current()?)
    }

    fn aclrtStreamQuery(stream: acl::aclrtStream, status: *mut acl::aclrtStreamStatus) {
        let complete = stream::get(stream)?.is_complete();
        put(status, "status", if complete { acl::ACL_STREAM_STATUS_COMPLETE } else { acl::ACL_STREAM_STATUS_NOT_READY })
    }

    fn aclrtStreamWaitEvent(stream: acl::aclrtStream, event: acl::aclrtEvent) {
        let stream = stream::get(stream)?;
        let event = EVENTS.get(event)?;
        match event.latest() {
            0 => Err(invalid("the event was never recorded: the stream would wait for ever; call aclrtRecordEvent before")),
            number => stream.submit(Task::Wait(event, number)),
        }
    }

    fn aclrtSetStreamAttribute(stream: acl::aclrtStream, attribute: acl::aclrtStreamAttr, value: *mut acl::aclrtStreamAttrValue) {
        let stream = stream::get(stream)?;
        let value = read(value, "value")?;
        match attribute {
            acl::ACL_STREAM_ATTR_FAILURE_MODE => {
                // SAFETY: every bit pattern is a number.
                let mode = unsafe { value.failureMode };
                if mode > u64::from(acl::ACL_STOP_ON_FAILURE) {
                    return Err(invalid(format!("failureMode {mode}: 0 (go on) or 1 (stop) is wanted")));
                }
                stream.set_stop_on_failure(mode == u64::from(acl::ACL_STOP_ON_FAILURE));
                Ok(())
            }
            acl::ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK
            | acl::ACL_STREAM_ATTR_USER_CUSTOM_TAG
            | acl::ACL_STREAM_ATTR_CACHE_OP_INFO
            | acl::ACL_STREAM_ATTR_PRIORITY => Ok(()),
            other => Err(invalid(format!("attribute {other} is none that streams have"))),
        }
    }

    fn aclrtCreateEvent(event: *mut acl::aclrtEvent) {
        device::current()?;
        if event.is_null() {
            return Err(invalid("event is NULL"));
        }
        put(event, "event", EVENTS.insert(Arc::new(Event::new(true))))
    }

    fn aclrtCreateEventExWithFlag(event: *mut acl::aclrtEvent, flag: u32) {
        device::current()?;
        if event.is_null() {
            return Err(invalid("event is NULL"));
        }
        if flag == 0 || flag & !EVENT_FLAGS != 0 {
            return Err(fail(
                if flag == 0 { acl::ACL_ERROR_RT_PARAM_INVALID } else { acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT },
                format!("flag {flag:#x}: one or more of SYNC (1), CAPTURE_STREAM_PROGRESS (2) and TIME_LINE (8) are wanted; the emulator has no others"),
            ));
        }
        put(event, "event", EVENTS.insert(Arc::new(Event::new(flag & acl::ACL_EVENT_TIME_LINE != 0))))
    }

    fn aclrtDestroyEvent(event: acl::aclrtEvent) {
        EVENTS.remove(event).map(|_| ())
    }

    fn aclrtRecordEvent(event: acl::aclrtEvent, stream: acl::aclrtStream) {
        let event = EVENTS.get(event)?;
        let stream = stream::get(stream)?;
        let number = event.record();
        stream.submit(Task::Record(event.clone(), number)).inspect_err(|_| event.reach(number))
    }

    fn aclrtSynchronizeEvent(event: acl::aclrtEvent) {
        let event = EVENTS.get(event)?;
        event.wait(event.latest(), || false);
        Ok(())
    }

    fn aclrtQueryEventStatus(event: acl::aclrtEvent, status: *mut acl::aclrtEventRecordedStatus) {
        let complete = EVENTS.get(event)?.is_complete();
        put(status, "status", if complete { acl::ACL_EVENT_RECORDED_STATUS_COMPLETE } else { acl::ACL_EVENT_RECORDED_STATUS_NOT_READY })
    }

    fn aclrtEventElapsedTime(ms: *mut f32, start: acl::aclrtEvent, end: acl::aclrtEvent) {
        put(ms, "ms", Event::elapsed(&*EVENTS.get(start)?, &*EVENTS.get(end)?)?)
    }

    fn aclrtValueWrite(address: *mut c_void, value: u64, flag: u32, stream: acl::aclrtStream) {
        if flag != 0 {
            return Err(invalid(format!("flag {flag:#x}: the parameter is reserved and must be 0")));
        }
        check_word(address as u64)?;
        stream::get(stream)?.submit(Task::WriteWord { address: address as u64, value })
    }

    fn aclrtValueWait(address: *mut c_void, value: u64, flag: u32, stream: acl::aclrtStream) {
        if flag > acl::ACL_STREAM_WAIT_VALUE_NOR {
            return Err(invalid(format!("flag {flag}: 0 (GEQ), 1 (EQ), 2 (AND) or 3 (NOR) is wanted")));
        }
        check_word(address as u64)?;
        stream::get(stream)?.submit(Task::WaitWord { address: address as u64, value, test: flag })
    }

    fn aclrtLaunchHostFunc(stream: acl::aclrtStream, function: acl::aclrtHostFunc, arguments: *mut c_void) {
        let function = function.ok_or_else(|| invalid("fn is NULL"))?;
        stream::get(stream)?.submit(Task::Call { function, argument: arguments as usize })
    }
}
