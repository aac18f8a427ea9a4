// SPDX-License-Identifier: Apache-2.0
//! The loop of router.c in Rust, without crates. Handles free what they hold, and errors are
//! results.
//!
//!     rustc --edition 2021 -O router.rs $(pkg-config --libs kvca) && ./router policy.yaml
//!
//! The modules `sys` and `kvca` wrap what a router needs of the library and can be taken as they
//! are. The structures are those of the headers of kvca 0.2; their sizes tell them from those of a
//! later version.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::path::Path;
use std::process::ExitCode;

use kvca::{Booking, Params, Pool, Reason, Result, Row, Selection};

/// The library's interface, as its headers declare it.
#[allow(non_camel_case_types)]
mod sys {
    use std::mem::{size_of, MaybeUninit};
    use std::os::raw::{c_char, c_int, c_void};

    pub type kvca_status = c_int;
    pub const KVCA_OK: kvca_status = 0;
    pub const KVCA_ERR_ROW: kvca_status = 24;
    pub const KVCA_ERR_FILE: kvca_status = 30;
    pub const KVCA_NOT_SELECTED: kvca_status = 35;
    pub const KVCA_STALE: kvca_status = 50;
    pub const KVCA_NONE_FITS: kvca_status = 52;
    pub const KVCA_ROLE_DECODE: c_int = 0;
    pub const KVCA_REASON_TIED: c_int = 0;
    pub const KVCA_REASON_DOES_NOT_FIT: c_int = 1;
    pub const KVCA_REASON_MORE_REQUESTS: c_int = 2;
    pub const KVCA_REASON_HIGHER_COST: c_int = 3;
    pub const KVCA_REASON_MORE_BLOCKS: c_int = 4;

    #[repr(C)]
    pub struct kvca_params {
        pub size: usize,
        pub capacity_fraction: f64,
        pub decode_active_request_weight: f64,
        pub capacity_blocks: u64,
        pub count_priority: bool,
    }

    #[repr(C)]
    pub struct kvca_error {
        pub size: usize,
        pub status: kvca_status,
        pub line: usize,
        pub column: usize,
        pub message: [c_char; 1024],
    }

    #[repr(C)]
    pub struct kvca_ranks {
        pub size: usize,
        pub count: usize,
        pub worker_id: *const u64,
        pub dp_rank: *const u32,
        pub decode_cost_blocks: *const u64,
        pub active_requests: *const u64,
        pub total_kv_blocks: *const u64,
        pub preferred_taint_multiplier: *const f64,
        pub request_blocks: u64,
    }

    #[repr(C)]
    pub struct kvca_selection {
        pub size: usize,
        pub row: usize,
        pub outcome: c_int,
        pub fits: usize,
        pub ties: usize,
        pub unknown_capacity: usize,
    }

    #[repr(C)]
    pub struct kvca_explanation {
        pub size: usize,
        pub decode_cost_blocks: u64,
        pub active_requests: u64,
        pub capacity: u64,
        pub capacity_source: c_int,
        pub limit: u64,
        pub fits: bool,
        pub cost: f64,
        pub reason: c_int,
    }

    #[repr(C)]
    pub struct kvca_rank {
        pub size: usize,
        pub worker_id: u64,
        pub dp_rank: u32,
        pub total_kv_blocks: u64,
    }

    #[repr(C)]
    pub struct kvca_put {
        pub size: usize,
        pub slot: u32,
        pub generation: u32,
        pub added: bool,
        pub unknown_capacity: bool,
    }

    #[repr(C)]
    pub struct kvca_request {
        pub size: usize,
        pub blocks: u64,
        pub eligible: *const u64,
        pub preferred_taint_multiplier: *const f64,
        pub only_if_fits: bool,
    }

    #[repr(C)]
    #[derive(Default)]
    pub struct kvca_booking {
        pub slot: u32,
        pub generation: u32,
        pub owner: u64,
        pub blocks: u64,
    }

    #[repr(C)]
    pub struct kvca_counters {
        pub size: usize,
        pub placed: u64,
        pub fallbacks: u64,
        pub none: u64,
        pub stale: u64,
        pub voided: u64,
    }

    #[repr(C)]
    pub struct kvca_snapshot {
        pub size: usize,
        pub count: usize,
        pub ranks: *const kvca_ranks,
        pub slot: *const u32,
        pub counters: *const kvca_counters,
        pub params: *const kvca_params,
    }

    /// Those that begin with their size. All zero is a value of each, but for the size.
    pub unsafe trait Grows {}
    unsafe impl Grows for kvca_params {}
    unsafe impl Grows for kvca_error {}
    unsafe impl Grows for kvca_selection {}
    unsafe impl Grows for kvca_explanation {}
    unsafe impl Grows for kvca_put {}
    unsafe impl Grows for kvca_snapshot {}

    /// One that is empty but for its size.
    pub fn sized<T: Grows>() -> T {
        let mut made = MaybeUninit::<T>::zeroed();
        unsafe {
            made.as_mut_ptr().cast::<usize>().write(size_of::<T>());
            made.assume_init()
        }
    }

    /// A pool is used only by its address.
    #[repr(C)]
    pub struct kvca_pool([u8; 0]);
    #[repr(C)]
    pub struct kvca_policy([u8; 0]);

    extern "C" {
        pub fn kvca_strerror(status: kvca_status) -> *const c_char;
        pub fn kvca_config_load_file(
            path: *const c_char,
            role: c_int,
            params: *mut kvca_params,
            error: *mut kvca_error,
        ) -> kvca_status;
        pub fn kvca_policy_new(
            params: *const kvca_params,
            policy: *mut *mut kvca_policy,
        ) -> kvca_status;
        pub fn kvca_policy_params(policy: *const kvca_policy) -> *const kvca_params;
        pub fn kvca_policy_free(policy: *mut kvca_policy);
        pub fn kvca_explain(
            params: *const kvca_params,
            ranks: *const kvca_ranks,
            selection: *const kvca_selection,
            row: usize,
            explanation: *mut kvca_explanation,
        ) -> kvca_status;
        pub fn kvca_pool_new(
            max_ranks: u32,
            max_owners: u32,
            params: *const kvca_params,
            pool: *mut *mut kvca_pool,
        ) -> kvca_status;
        pub fn kvca_pool_free(pool: *mut kvca_pool);
        pub fn kvca_pool_owner_claim(pool: *mut kvca_pool, id: u64, owner: *mut u64)
            -> kvca_status;
        pub fn kvca_pool_set_seed(pool: *mut kvca_pool, seed: u64) -> kvca_status;
        pub fn kvca_pool_put(
            pool: *mut kvca_pool,
            rank: *const kvca_rank,
            put: *mut kvca_put,
        ) -> kvca_status;
        pub fn kvca_pool_place(
            pool: *mut kvca_pool,
            owner: u64,
            request: *const kvca_request,
            booking: *mut kvca_booking,
            selection: *mut kvca_selection,
        ) -> kvca_status;
        pub fn kvca_pool_release(pool: *mut kvca_pool, booking: *mut kvca_booking) -> kvca_status;
        pub fn kvca_pool_snapshot_bytes(pool: *const kvca_pool) -> usize;
        pub fn kvca_pool_snapshot(
            pool: *mut kvca_pool,
            buffer: *mut c_void,
            bytes: usize,
            snapshot: *mut kvca_snapshot,
        ) -> kvca_status;
    }
}

/// What the rest of a program sees.
///
/// Each `unsafe` block here calls a function of the library with pointers to values that outlive
/// the call, and with a pool or a policy that is not freed yet. The library requires no more.
mod kvca {
    use std::ffi::{CStr, CString};
    use std::fmt;
    use std::mem::size_of;
    use std::os::raw::c_char;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::ptr::{self, NonNull};

    use crate::sys;
    pub use crate::sys::{KVCA_NONE_FITS as NONE_FITS, KVCA_NOT_SELECTED as NOT_SELECTED};

    #[derive(Debug)]
    pub struct Error {
        pub status: i32,
        message: String,
    }

    impl From<sys::kvca_status> for Error {
        fn from(status: sys::kvca_status) -> Self {
            let message = unsafe { text(sys::kvca_strerror(status)) };
            Error { status, message }
        }
    }

    impl fmt::Display for Error {
        fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str(&self.message)
        }
    }

    impl std::error::Error for Error {}

    pub type Result<T> = std::result::Result<T, Error>;

    fn check(status: sys::kvca_status) -> Result<()> {
        match status {
            sys::KVCA_OK => Ok(()),
            _ => Err(status.into()),
        }
    }

    /// Copies a text that ends with a null byte.
    unsafe fn text(text: *const c_char) -> String {
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }

    /// The parameters of the policy.
    pub struct Params(sys::kvca_params);

    impl Params {
        /// Reads the decode policy of a file. The status `NOT_SELECTED` says that the file leaves
        /// the pool to the router's own selector.
        pub fn load(path: &Path) -> Result<Params> {
            let path = CString::new(path.as_os_str().as_bytes()).map_err(|fault| Error {
                status: sys::KVCA_ERR_FILE,
                message: format!("{}: {}", path.display(), fault),
            })?;
            let mut params = sys::sized();
            let mut error: sys::kvca_error = sys::sized();
            let role = sys::KVCA_ROLE_DECODE;
            // The call writes either `params` or `error`.
            unsafe {
                match sys::kvca_config_load_file(path.as_ptr(), role, &mut params, &mut error) {
                    sys::KVCA_OK => Ok(Params(params)),
                    status => Err(Error {
                        status,
                        message: text(error.message.as_ptr()),
                    }),
                }
            }
        }
    }

    /// The ledger of one process. Its methods need exclusive access, so threads share a
    /// `Mutex<Pool>`.
    pub struct Pool {
        raw: NonNull<sys::kvca_pool>,
        owner: u64,
    }

    // A pool is not tied to the thread that made it.
    unsafe impl Send for Pool {}

    impl Drop for Pool {
        fn drop(&mut self) {
            unsafe { sys::kvca_pool_free(self.raw.as_ptr()) }
        }
    }

    /// One request on one rank. End it with `Pool::release`: if it is dropped, it stays booked.
    #[must_use]
    pub struct Booking(sys::kvca_booking);

    /// How a rank was picked.
    pub struct Selection {
        pub slot: usize,
        pub fits: usize,
        pub ties: usize,
    }

    impl Pool {
        pub fn new(max_ranks: u32, params: &Params) -> Result<Pool> {
            let mut raw = ptr::null_mut();
            check(unsafe { sys::kvca_pool_new(max_ranks, 1, &params.0, &mut raw) })?;
            let raw = NonNull::new(raw).expect("a pool that was made has an address");
            let mut pool = Pool { raw, owner: 0 };
            check(unsafe { sys::kvca_pool_owner_claim(raw.as_ptr(), 0, &mut pool.owner) })?;
            Ok(pool)
        }

        /// Makes draws repeatable. A router leaves it out.
        pub fn set_seed(&mut self, seed: u64) -> Result<()> {
            check(unsafe { sys::kvca_pool_set_seed(self.raw.as_ptr(), seed) })
        }

        /// Adds a rank. Returns its slot, and whether its capacity is unknown.
        pub fn put(
            &mut self,
            worker_id: u64,
            dp_rank: u32,
            total_kv_blocks: u64,
        ) -> Result<(usize, bool)> {
            let rank = sys::kvca_rank {
                size: size_of::<sys::kvca_rank>(),
                worker_id,
                dp_rank,
                total_kv_blocks,
            };
            let mut put: sys::kvca_put = sys::sized();
            check(unsafe { sys::kvca_pool_put(self.raw.as_ptr(), &rank, &mut put) })?;
            Ok((put.slot as usize, put.unknown_capacity))
        }

        /// Picks a rank and books the request on it. Returns `None` while no rank has room.
        pub fn place(&mut self, blocks: u64) -> Result<Option<(Booking, Selection)>> {
            let request = sys::kvca_request {
                size: size_of::<sys::kvca_request>(),
                blocks,
                eligible: ptr::null(),
                preferred_taint_multiplier: ptr::null(),
                only_if_fits: true,
            };
            let mut booking = sys::kvca_booking::default();
            let mut selection = sys::sized();
            let pool = self.raw.as_ptr();
            let status = unsafe {
                sys::kvca_pool_place(pool, self.owner, &request, &mut booking, &mut selection)
            };
            if status == sys::KVCA_NONE_FITS {
                return Ok(None);
            }
            check(status)?;
            let sys::kvca_selection {
                row: slot,
                fits,
                ties,
                ..
            } = selection;
            Ok(Some((Booking(booking), Selection { slot, fits, ties })))
        }

        pub fn release(&mut self, mut booking: Booking) -> Result<()> {
            match unsafe { sys::kvca_pool_release(self.raw.as_ptr(), &mut booking.0) } {
                sys::KVCA_STALE => Ok(()), // it went when its rank was dropped
                status => check(status),
            }
        }

        /// The ranks as they are now.
        pub fn snapshot(&mut self) -> Result<Snapshot> {
            let bytes = unsafe { sys::kvca_pool_snapshot_bytes(self.raw.as_ptr()) };
            let mut columns = vec![0u64; bytes / 8 + 1];
            let mut raw = sys::sized();
            let buffer = columns.as_mut_ptr().cast();
            check(unsafe { sys::kvca_pool_snapshot(self.raw.as_ptr(), buffer, bytes, &mut raw) })?;
            Ok(Snapshot {
                raw,
                _columns: columns,
            })
        }
    }

    /// The ranks of a pool as they were at one moment.
    pub struct Snapshot {
        raw: sys::kvca_snapshot,
        _columns: Vec<u64>, // the pointers of `raw` point into it
    }

    /// How a rank looked to a request.
    pub struct Row {
        pub worker_id: u64,
        pub dp_rank: u32,
        pub picked: bool,
        pub blocks: u64,
        pub requests: u64,
        pub limit: u64,
        pub reason: Reason,
    }

    #[derive(Clone, Copy)]
    pub enum Reason {
        Tied,
        DoesNotFit,
        MoreRequests,
        HigherCost,
        MoreBlocks,
        Unknown,
    }

    impl From<i32> for Reason {
        fn from(reason: i32) -> Self {
            match reason {
                sys::KVCA_REASON_TIED => Reason::Tied,
                sys::KVCA_REASON_DOES_NOT_FIT => Reason::DoesNotFit,
                sys::KVCA_REASON_MORE_REQUESTS => Reason::MoreRequests,
                sys::KVCA_REASON_HIGHER_COST => Reason::HigherCost,
                sys::KVCA_REASON_MORE_BLOCKS => Reason::MoreBlocks,
                _ => Reason::Unknown,
            }
        }
    }

    struct Policy(*mut sys::kvca_policy);

    impl Drop for Policy {
        fn drop(&mut self) {
            unsafe { sys::kvca_policy_free(self.0) }
        }
    }

    impl Snapshot {
        /// How each rank looked to a request of `blocks`, which was placed next, with
        /// `selection`.
        pub fn explain(&self, blocks: u64, selection: &Selection) -> Result<Vec<Row>> {
            let mut policy = Policy(ptr::null_mut());
            check(unsafe { sys::kvca_policy_new(self.raw.params, &mut policy.0) })?;
            let told = unsafe { &*self.raw.ranks };
            let ranks = sys::kvca_ranks {
                size: size_of::<sys::kvca_ranks>(),
                count: told.count,
                worker_id: told.worker_id,
                dp_rank: told.dp_rank,
                decode_cost_blocks: told.decode_cost_blocks,
                active_requests: told.active_requests,
                total_kv_blocks: told.total_kv_blocks,
                preferred_taint_multiplier: ptr::null(),
                request_blocks: blocks,
            };
            // A pool returns slots, `kvca_explain` takes rows.
            let slot_of = |row| unsafe { *self.raw.slot.add(row) } as usize;
            let picked = (0..ranks.count)
                .find(|&row| slot_of(row) == selection.slot)
                .ok_or(sys::KVCA_ERR_ROW)?;
            let picked = sys::kvca_selection {
                row: picked,
                fits: selection.fits,
                ..sys::sized()
            };
            (0..ranks.count)
                .map(|row| {
                    let mut told: sys::kvca_explanation = sys::sized();
                    check(unsafe {
                        let params = sys::kvca_policy_params(policy.0);
                        sys::kvca_explain(params, &ranks, &picked, row, &mut told)
                    })?;
                    Ok(Row {
                        worker_id: unsafe { *ranks.worker_id.add(row) },
                        dp_rank: unsafe { *ranks.dp_rank.add(row) },
                        picked: row == picked.row,
                        blocks: told.decode_cost_blocks,
                        requests: told.active_requests,
                        limit: told.limit,
                        reason: told.reason.into(),
                    })
                })
                .collect()
        }
    }
}

const REQUESTS: u64 = 100;
const LISTED: u64 = 10;
const MOST_IN_FLIGHT: usize = 16;

/// Made-up traffic: every tenth prompt is a long one.
fn request_blocks(number: u64) -> u64 {
    match number % 10 {
        0 => 600,
        _ => 40 + number * 37 % 100,
    }
}

/// What was sent to a rank.
#[derive(Default)]
struct Rank {
    name: String,
    requests: u64,
    blocks: u64,
}

struct Router {
    pool: Pool,
    ranks: BTreeMap<usize, Rank>, // by slot
    in_flight: VecDeque<Booking>,
    waits: u64,
}

impl Router {
    fn new(params: &Params) -> Result<Router> {
        let mut pool = Pool::new(3, params)?;
        pool.set_seed(1)?; // for output that can be compared
        let mut router = Router {
            pool,
            ranks: BTreeMap::new(),
            in_flight: VecDeque::new(),
            waits: 0,
        };
        router.add(7, 0, 1000)?;
        router.add(7, 1, 1000)?;
        router.add(8, 0, 500)?;
        Ok(router)
    }

    fn add(&mut self, worker_id: u64, dp_rank: u32, total_kv_blocks: u64) -> Result<()> {
        let (slot, unknown_capacity) = self.pool.put(worker_id, dp_rank, total_kv_blocks)?;
        let name = format!("worker {worker_id}, dp_rank {dp_rank}");
        if unknown_capacity {
            eprintln!("{name}: no known capacity, so it is never found full");
        }
        self.ranks.insert(
            slot,
            Rank {
                name,
                ..Default::default()
            },
        );
        Ok(())
    }

    /// Ends the oldest request, if there is one.
    fn end_oldest(&mut self) -> Result<bool> {
        match self.in_flight.pop_front() {
            Some(booking) => self.pool.release(booking).map(|()| true),
            None => Ok(false),
        }
    }

    /// Waits for requests to end while no rank has room. If none is left to wait for, the request
    /// is too large.
    fn place(&mut self, blocks: u64) -> Result<(Booking, Selection)> {
        loop {
            if let Some(placed) = self.pool.place(blocks)? {
                return Ok(placed);
            }
            if !self.end_oldest()? {
                return Err(kvca::NONE_FITS.into());
            }
            self.waits += 1;
        }
    }

    fn serve(&mut self, number: u64) -> Result<()> {
        if self.in_flight.len() == MOST_IN_FLIGHT {
            self.end_oldest()?;
        }
        let blocks = request_blocks(number);
        let before = if number == 0 {
            Some(self.pool.snapshot()?)
        } else {
            None
        };
        let (booking, selection) = self.place(blocks)?;
        self.in_flight.push_back(booking);
        if let Some(before) = before {
            print_decision(&before.explain(blocks, &selection)?, &selection);
        }
        let rank = self.ranks.entry(selection.slot).or_default();
        rank.requests += 1;
        rank.blocks += blocks;
        if number < LISTED {
            println!("request {number}, {blocks} blocks: {}", rank.name);
        }
        Ok(())
    }

    fn report(&self) {
        println!("{REQUESTS} requests placed, {} waits for room", self.waits);
        for rank in self.ranks.values() {
            println!(
                "  {}: {} requests, {} blocks",
                rank.name, rank.requests, rank.blocks
            );
        }
    }
}

fn verdict(row: &Row) -> &'static str {
    match row.reason {
        Reason::Tied if row.picked => "picked",
        Reason::Tied => "as good as the pick",
        Reason::DoesNotFit => "does not fit",
        Reason::MoreRequests => "more requests",
        Reason::HigherCost => "higher cost",
        Reason::MoreBlocks => "more blocks",
        Reason::Unknown => "unknown",
    }
}

fn print_decision(rows: &[Row], selection: &Selection) {
    let Selection { fits, ties, .. } = selection;
    println!(
        "{fits} of {} ranks have room for the first request, {ties} are equally good:",
        rows.len()
    );
    for row in rows {
        println!(
            "  worker {}, dp_rank {}: {} of {} blocks, {} requests: {}",
            row.worker_id,
            row.dp_rank,
            row.blocks,
            row.limit,
            row.requests,
            verdict(row)
        );
    }
}

fn run(policy: &Path) -> Result<()> {
    let mut router = Router::new(&Params::load(policy)?)?;
    for number in 0..REQUESTS {
        router.serve(number)?;
    }
    while router.end_oldest()? {}
    router.report();
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    if arguments.len() != 1 {
        eprintln!("usage: router POLICY");
        return ExitCode::from(2);
    }
    match run(Path::new(&arguments[0])) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            // A policy that leaves the pool to the router's own selector is no fault.
            ExitCode::from(if error.status == kvca::NOT_SELECTED {
                0
            } else {
                1
            })
        }
    }
}
