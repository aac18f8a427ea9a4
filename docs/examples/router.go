// SPDX-License-Identifier: Apache-2.0

// The loop of router.c in Go, with cgo.
//
//	go build router.go && ./router policy.yaml
//
// The first part wraps what a router needs of the library. Other programs can
// use it as it is.
package main

/*
#cgo pkg-config: kvca
#include <stdlib.h>
#include <kvca/config.h>
#include <kvca/pool.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// Status is what the library returns when it cannot do what was asked.
type Status C.kvca_status

// The statuses that a router handles in different ways.
const (
	NotSelected Status = C.KVCA_NOT_SELECTED
	Stale       Status = C.KVCA_STALE
	NoneFits    Status = C.KVCA_NONE_FITS
)

func (s Status) Error() string {
	return C.GoString(C.kvca_strerror(C.kvca_status(s)))
}

func check(status C.kvca_status) error {
	if status != C.KVCA_OK {
		return Status(status)
	}
	return nil
}

// PolicyError says what is wrong with a policy file, and where.
type PolicyError struct {
	Status  Status
	Message string
}

func (e *PolicyError) Error() string { return e.Message }
func (e *PolicyError) Unwrap() error { return e.Status }

// Params are the parameters of the policy.
type Params struct{ c C.kvca_params }

// LoadPolicy reads the decode policy of a file. NotSelected says that the file
// leaves the pool to the router's own selector.
func LoadPolicy(path string) (*Params, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	params := &Params{C.kvca_params{size: C.sizeof_kvca_params}}
	fault := C.kvca_error{size: C.sizeof_kvca_error}
	status := C.kvca_config_load_file(name, C.KVCA_ROLE_DECODE, &params.c, &fault)
	if status != C.KVCA_OK {
		return nil, &PolicyError{Status(status), C.GoString(&fault.message[0])}
	}
	return params, nil
}

// Pool is the ledger of one process. Any number of goroutines may use it.
type Pool struct {
	mutex sync.Mutex
	c     *C.kvca_pool
	owner C.kvca_owner
}

// Booking is one request on one rank. Pool.Release ends it. Keep no copies.
type Booking struct{ c C.kvca_booking }

// Placement is a booking, and how its rank was picked.
type Placement struct {
	Booking          *Booking
	Slot, Fits, Ties int
}

// Row is how a rank looked to a request.
type Row struct {
	WorkerID uint64
	DPRank   uint32
	Picked   bool
	Blocks   uint64
	Requests uint64
	Limit    uint64
	Reason   Reason
}

// Reason says why a rank was or was not picked.
type Reason C.kvca_reason

func (r Reason) String() string {
	switch r {
	case C.KVCA_REASON_TIED:
		return "as good as the pick"
	case C.KVCA_REASON_DOES_NOT_FIT:
		return "does not fit"
	case C.KVCA_REASON_MORE_REQUESTS:
		return "more requests"
	case C.KVCA_REASON_HIGHER_COST:
		return "higher cost"
	case C.KVCA_REASON_MORE_BLOCKS:
		return "more blocks"
	}
	return "unknown"
}

// NewPool makes an empty pool, which Close frees.
func NewPool(maxRanks uint32, params *Params) (*Pool, error) {
	pool := new(Pool)
	if err := check(C.kvca_pool_new(C.uint32_t(maxRanks), 1, &params.c, &pool.c)); err != nil {
		return nil, err
	}
	if err := check(C.kvca_pool_owner_claim(pool.c, 0, &pool.owner)); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// Close frees the pool. Later calls on it are errors.
func (p *Pool) Close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	C.kvca_pool_free(p.c)
	p.c = nil
}

// SetSeed makes draws repeatable. A router leaves it out.
func (p *Pool) SetSeed(seed uint64) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return check(C.kvca_pool_set_seed(p.c, C.uint64_t(seed)))
}

// Put adds a rank, or updates its capacity. It returns the rank's slot, and
// whether its capacity is unknown, so that it is never found full.
func (p *Pool) Put(workerID uint64, dpRank uint32, totalKVBlocks uint64) (slot int, unknown bool, err error) {
	rank := C.kvca_rank{
		size:            C.sizeof_kvca_rank,
		worker_id:       C.uint64_t(workerID),
		dp_rank:         C.uint32_t(dpRank),
		total_kv_blocks: C.uint64_t(totalKVBlocks),
	}
	put := C.kvca_put{size: C.sizeof_kvca_put}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	err = check(C.kvca_pool_put(p.c, &rank, &put))
	return int(put.slot), bool(put.unknown_capacity), err
}

// Place picks a rank and books the request on it. The error is NoneFits while
// no rank has room.
func (p *Pool) Place(blocks uint64) (*Placement, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.place(blocks)
}

// PlaceExplained does what Place does, and returns how every rank looked.
func (p *Pool) PlaceExplained(blocks uint64) (*Placement, []Row, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	size := C.kvca_pool_snapshot_bytes(p.c)
	buffer := C.malloc(size) // C memory, because the snapshot points into it
	defer C.free(buffer)
	before := C.kvca_snapshot{size: C.sizeof_kvca_snapshot}
	if err := check(C.kvca_pool_snapshot(p.c, buffer, size, &before)); err != nil {
		return nil, nil, err
	}
	placement, err := p.place(blocks)
	if err != nil {
		return nil, nil, err
	}
	rows, err := explain(&before, blocks, placement)
	return placement, rows, err
}

// Release ends a booking. If the booking went when its rank was dropped, nothing
// is left to do.
func (p *Pool) Release(booking *Booking) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	err := check(C.kvca_pool_release(p.c, &booking.c))
	if err == Stale {
		return nil
	}
	return err
}

// A mask of slots (eligible) or multipliers would have to be C memory, or
// pinned, because cgo refuses Go pointers inside Go memory.
func (p *Pool) place(blocks uint64) (*Placement, error) {
	request := C.kvca_request{size: C.sizeof_kvca_request, blocks: C.uint64_t(blocks), only_if_fits: true}
	booking := new(Booking)
	picked := C.kvca_selection{size: C.sizeof_kvca_selection}
	if err := check(C.kvca_pool_place(p.c, p.owner, &request, &booking.c, &picked)); err != nil {
		return nil, err
	}
	return &Placement{booking, int(picked.row), int(picked.fits), int(picked.ties)}, nil
}

func explain(before *C.kvca_snapshot, blocks uint64, placement *Placement) ([]Row, error) {
	var policy *C.kvca_policy
	if err := check(C.kvca_policy_new(before.params, &policy)); err != nil {
		return nil, err
	}
	defer C.kvca_policy_free(policy)
	ranks := C.kvca_ranks{
		size:               C.sizeof_kvca_ranks,
		count:              before.ranks.count,
		worker_id:          before.ranks.worker_id,
		dp_rank:            before.ranks.dp_rank,
		decode_cost_blocks: before.ranks.decode_cost_blocks,
		active_requests:    before.ranks.active_requests,
		total_kv_blocks:    before.ranks.total_kv_blocks,
		request_blocks:     C.uint64_t(blocks),
	}
	workers := unsafe.Slice(ranks.worker_id, ranks.count)
	dpRanks := unsafe.Slice(ranks.dp_rank, ranks.count)
	selection := C.kvca_selection{size: C.sizeof_kvca_selection, fits: C.size_t(placement.Fits)}
	for row, slot := range unsafe.Slice(before.slot, ranks.count) {
		if int(slot) == placement.Slot { // a pool returns slots, kvca_explain takes rows
			selection.row = C.size_t(row)
		}
	}
	rows := make([]Row, ranks.count)
	for row := range rows {
		told := C.kvca_explanation{size: C.sizeof_kvca_explanation}
		if err := check(C.kvca_explain(C.kvca_policy_params(policy), &ranks, &selection, C.size_t(row), &told)); err != nil {
			return nil, err
		}
		rows[row] = Row{
			WorkerID: uint64(workers[row]),
			DPRank:   uint32(dpRanks[row]),
			Picked:   C.size_t(row) == selection.row,
			Blocks:   uint64(told.decode_cost_blocks),
			Requests: uint64(told.active_requests),
			Limit:    uint64(told.limit),
			Reason:   Reason(told.reason),
		}
	}
	return rows, nil
}

const (
	requests     = 100
	listed       = 10
	mostInFlight = 16
)

// requestBlocks is made-up traffic: every tenth prompt is a long one.
func requestBlocks(number uint64) uint64 {
	if number%10 == 0 {
		return 600
	}
	return 40 + number*37%100
}

// sent is what went to a rank.
type sent struct {
	name             string
	requests, blocks uint64
}

type router struct {
	pool     *Pool
	ranks    []sent // by slot
	inFlight []*Booking
	waits    int
}

func (r *router) add(workerID uint64, dpRank uint32, totalKVBlocks uint64) error {
	slot, unknown, err := r.pool.Put(workerID, dpRank, totalKVBlocks)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("worker %d, dp_rank %d", workerID, dpRank)
	if unknown {
		fmt.Fprintf(os.Stderr, "%s: no known capacity, so it is never found full\n", name)
	}
	for len(r.ranks) <= slot {
		r.ranks = append(r.ranks, sent{})
	}
	r.ranks[slot].name = name
	return nil
}

func (r *router) start() error {
	if err := r.pool.SetSeed(1); err != nil { // for output that can be compared
		return err
	}
	if err := r.add(7, 0, 1000); err != nil {
		return err
	}
	if err := r.add(7, 1, 1000); err != nil {
		return err
	}
	return r.add(8, 0, 500)
}

func (r *router) endOldest() error {
	oldest := r.inFlight[0]
	r.inFlight = r.inFlight[1:]
	return r.pool.Release(oldest)
}

// place waits for requests to end while no rank has room. If none is left to
// wait for, the request is too large.
func (r *router) place(number, blocks uint64) (*Placement, error) {
	for {
		placement, err := r.tryToPlace(number, blocks)
		if !errors.Is(err, NoneFits) || len(r.inFlight) == 0 {
			return placement, err
		}
		r.waits++
		if err := r.endOldest(); err != nil {
			return nil, err
		}
	}
}

func (r *router) tryToPlace(number, blocks uint64) (*Placement, error) {
	if number > 0 {
		return r.pool.Place(blocks)
	}
	placement, rows, err := r.pool.PlaceExplained(blocks)
	if err == nil {
		printDecision(placement, rows)
	}
	return placement, err
}

func (r *router) serve(number uint64) error {
	if len(r.inFlight) == mostInFlight {
		if err := r.endOldest(); err != nil {
			return err
		}
	}
	blocks := requestBlocks(number)
	placement, err := r.place(number, blocks)
	if err != nil {
		return err
	}
	r.inFlight = append(r.inFlight, placement.Booking)
	rank := &r.ranks[placement.Slot]
	rank.requests++
	rank.blocks += blocks
	if number < listed {
		fmt.Printf("request %d, %d blocks: %s\n", number, blocks, rank.name)
	}
	return nil
}

func (r *router) endAll() error {
	for len(r.inFlight) > 0 {
		if err := r.endOldest(); err != nil {
			return err
		}
	}
	return nil
}

func (r *router) report() {
	fmt.Printf("%d requests placed, %d waits for room\n", requests, r.waits)
	for _, rank := range r.ranks {
		fmt.Printf("  %s: %d requests, %d blocks\n", rank.name, rank.requests, rank.blocks)
	}
}

func printDecision(placement *Placement, rows []Row) {
	fmt.Printf("%d of %d ranks have room for the first request, %d are equally good:\n",
		placement.Fits, len(rows), placement.Ties)
	for _, row := range rows {
		verdict := row.Reason.String()
		if row.Picked {
			verdict = "picked"
		}
		fmt.Printf("  worker %d, dp_rank %d: %d of %d blocks, %d requests: %s\n",
			row.WorkerID, row.DPRank, row.Blocks, row.Limit, row.Requests, verdict)
	}
}

func run(policy string) error {
	params, err := LoadPolicy(policy)
	if err != nil {
		return err
	}
	pool, err := NewPool(3, params)
	if err != nil {
		return err
	}
	defer pool.Close()
	r := &router{pool: pool}
	if err := r.start(); err != nil {
		return err
	}
	for number := uint64(0); number < requests; number++ {
		if err := r.serve(number); err != nil {
			return err
		}
	}
	if err := r.endAll(); err != nil {
		return err
	}
	r.report()
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: router POLICY")
		os.Exit(2)
	}
	err := run(os.Args[1])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if !errors.Is(err, NotSelected) { // NotSelected leaves the pool to the router's own selector
		os.Exit(1)
	}
}
