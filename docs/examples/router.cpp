// SPDX-License-Identifier: Apache-2.0
//
// The loop of router.c in C++17. Handles free what they hold, bookings end themselves, and errors are exceptions.
//
//     c++ -std=c++17 router.cpp -o router $(pkg-config --cflags --libs kvca) && ./router policy.yaml
//
// The first part wraps what a router needs of the library. Other programs can use it as it is.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kvca/config.h>
#include <kvca/pool.h>

namespace kvca
{

class Error : public std::runtime_error
{
  public:
    explicit Error(kvca_status status) : std::runtime_error(kvca_strerror(status)), status_(status)
    {
    }

    Error(kvca_status status, const char *message) : std::runtime_error(message), status_(status)
    {
    }

    kvca_status status() const noexcept
    {
        return status_;
    }

  private:
    kvca_status status_;
};

inline void check(kvca_status status)
{
    if (status != KVCA_OK) {
        throw Error(status);
    }
}

// A structure of the library's, empty but for its size.
template <typename T> T sized()
{
    T made = {};
    made.size = sizeof made;
    return made;
}

inline kvca_params load_policy(const char *path, kvca_role role)
{
    kvca_params params = sized<kvca_params>();
    kvca_error error = sized<kvca_error>();
    kvca_status status = kvca_config_load_file(path, role, &params, &error);
    if (status != KVCA_OK) {
        throw Error(status, error.message);
    }
    return params;
}

template <auto function> struct Free {
    template <typename T> void operator()(T *object) const noexcept
    {
        function(object);
    }
};

// How a rank looked to a request.
struct Row {
    std::uint64_t worker_id;
    std::uint32_t dp_rank;
    bool picked;
    kvca_explanation told;
};

// The ranks of a pool as they were at one moment.
class Snapshot
{
  public:
    Snapshot(Snapshot &&) = default;
    Snapshot &operator=(Snapshot &&) = default;

    // How each rank looked to a request of `blocks`, which was placed next, with `selection`.
    std::vector<Row> explain(std::uint64_t blocks, kvca_selection selection) const
    {
        kvca_policy *made = nullptr;
        check(kvca_policy_new(snapshot_.params, &made));
        std::unique_ptr<kvca_policy, Free<kvca_policy_free>> policy(made);
        kvca_ranks ranks = sized<kvca_ranks>();
        ranks.count = snapshot_.ranks->count;
        ranks.worker_id = snapshot_.ranks->worker_id;
        ranks.dp_rank = snapshot_.ranks->dp_rank;
        ranks.decode_cost_blocks = snapshot_.ranks->decode_cost_blocks;
        ranks.active_requests = snapshot_.ranks->active_requests;
        ranks.total_kv_blocks = snapshot_.ranks->total_kv_blocks;
        ranks.request_blocks = blocks;
        const std::uint32_t *slots = snapshot_.slot; // a pool returns slots, kvca_explain() takes rows
        selection.row = static_cast<std::size_t>(std::find(slots, slots + ranks.count, selection.row) - slots);
        std::vector<Row> rows;
        for (std::size_t i = 0; i < ranks.count; i++) {
            Row row = {ranks.worker_id[i], ranks.dp_rank[i], i == selection.row, sized<kvca_explanation>()};
            check(kvca_explain(kvca_policy_params(policy.get()), &ranks, &selection, i, &row.told));
            rows.push_back(row);
        }
        return rows;
    }

  private:
    friend class Pool;

    explicit Snapshot(kvca_pool *pool) : buffer_(kvca_pool_snapshot_bytes(pool))
    {
        check(kvca_pool_snapshot(pool, buffer_.data(), buffer_.size(), &snapshot_));
    }

    std::vector<unsigned char> buffer_; // what the pointers lead to; new aligns it, and a move leaves it where it is
    kvca_snapshot snapshot_ = sized<kvca_snapshot>();
};

class Pool;

// A request on a rank, from its placement until it is destroyed. It must not outlive its pool.
class Booking
{
  public:
    Booking(Booking &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)), booking_(other.booking_)
    {
    }

    Booking &operator=(Booking &&other) noexcept
    {
        std::swap(pool_, other.pool_);
        std::swap(booking_, other.booking_);
        return *this;
    }

    ~Booking();

  private:
    friend class Pool;

    Booking(Pool *pool, const kvca_booking &booking) : pool_(pool), booking_(booking)
    {
    }

    Pool *pool_;
    kvca_booking booking_;
};

struct Placement {
    Booking booking;
    kvca_selection selection; // its row is a slot of the pool
};

// The ledger of one process. Any number of threads may use it.
class Pool
{
  public:
    Pool(std::uint32_t max_ranks, const kvca_params &params)
    {
        kvca_pool *made = nullptr;
        check(kvca_pool_new(max_ranks, 1, &params, &made));
        pool_.reset(made);
        check(kvca_pool_owner_claim(made, 0, &owner_));
    }

    // Makes draws repeatable. A router leaves it out.
    void set_seed(std::uint64_t seed)
    {
        std::lock_guard lock(mutex_);
        check(kvca_pool_set_seed(pool_.get(), seed));
    }

    kvca_put put(const kvca_rank &rank)
    {
        std::lock_guard lock(mutex_);
        kvca_put put = sized<kvca_put>();
        check(kvca_pool_put(pool_.get(), &rank, &put));
        return put;
    }

    // Returns nothing while no rank has room. `before` gets the ranks as they were before the pick.
    std::optional<Placement> place(std::uint64_t blocks, std::optional<Snapshot> *before = nullptr)
    {
        kvca_request request = sized<kvca_request>();
        request.blocks = blocks;
        request.only_if_fits = true;
        kvca_booking booking;
        kvca_selection selection = sized<kvca_selection>();
        std::lock_guard lock(mutex_);
        if (before) {
            *before = Snapshot(pool_.get());
        }
        kvca_status status = kvca_pool_place(pool_.get(), owner_, &request, &booking, &selection);
        if (status == KVCA_NONE_FITS) {
            return std::nullopt;
        }
        check(status);
        return Placement{Booking(this, booking), selection};
    }

  private:
    friend class Booking;

    std::mutex mutex_;
    std::unique_ptr<kvca_pool, Free<kvca_pool_free>> pool_;
    kvca_owner owner_ = 0;
};

inline Booking::~Booking()
{
    if (pool_) {
        std::lock_guard lock(pool_->mutex_);
        kvca_pool_release(pool_->pool_.get(), &booking_); // stale: its rank is gone, so nothing is left to do
    }
}

} // namespace kvca

namespace
{

constexpr std::uint64_t requests = 100;
constexpr std::uint64_t listed = 10;
constexpr std::size_t most_in_flight = 16;

// Made-up traffic: every tenth prompt is a long one.
std::uint64_t request_blocks(std::uint64_t number)
{
    return number % 10 == 0 ? 600 : 40 + number * 37 % 100;
}

const char *verdict(const kvca::Row &row)
{
    switch (row.told.reason) {
    case KVCA_REASON_TIED:
        return row.picked ? "picked" : "as good as the pick";
    case KVCA_REASON_DOES_NOT_FIT:
        return "does not fit";
    case KVCA_REASON_MORE_REQUESTS:
        return "more requests";
    case KVCA_REASON_HIGHER_COST:
        return "higher cost";
    case KVCA_REASON_MORE_BLOCKS:
        return "more blocks";
    case KVCA_REASON_NOT_ELIGIBLE:
        return "not eligible";
    }
    return "unknown";
}

void print_decision(const std::vector<kvca::Row> &rows, const kvca_selection &selection)
{
    std::cout << selection.fits << " of " << rows.size() << " ranks have room for the first request, "
              << selection.ties << " are equally good:\n";
    for (const kvca::Row &row : rows) {
        std::cout << "  worker " << row.worker_id << ", dp_rank " << row.dp_rank << ": "
                  << row.told.decode_cost_blocks << " of " << row.told.limit << " blocks, "
                  << row.told.active_requests << " requests: " << verdict(row) << '\n';
    }
}

class Router
{
  public:
    explicit Router(const kvca_params &params) : pool_(3, params)
    {
        pool_.set_seed(1); // for output that can be compared
        add(7, 0, 1000);
        add(7, 1, 1000);
        add(8, 0, 500);
    }

    void serve(std::uint64_t number)
    {
        if (in_flight_.size() == most_in_flight) {
            in_flight_.pop_front();
        }
        std::uint64_t blocks = request_blocks(number);
        std::optional<kvca::Snapshot> before;
        kvca::Placement placement = place(blocks, number == 0 ? &before : nullptr);
        in_flight_.push_back(std::move(placement.booking));
        if (before) {
            print_decision(before->explain(blocks, placement.selection), placement.selection);
        }
        Rank &rank = ranks_.at(placement.selection.row);
        rank.requests++;
        rank.blocks += blocks;
        if (number < listed) {
            std::cout << "request " << number << ", " << blocks << " blocks: worker " << rank.worker_id
                      << ", dp_rank " << rank.dp_rank << '\n';
        }
    }

    void report() const
    {
        std::cout << requests << " requests placed, " << waits_ << " waits for room\n";
        for (const Rank &rank : ranks_) {
            std::cout << "  worker " << rank.worker_id << ", dp_rank " << rank.dp_rank << ": " << rank.requests
                      << " requests, " << rank.blocks << " blocks\n";
        }
    }

  private:
    struct Rank {
        std::uint64_t worker_id = 0;
        std::uint32_t dp_rank = 0;
        std::uint64_t requests = 0;
        std::uint64_t blocks = 0;
    };

    void add(std::uint64_t worker_id, std::uint32_t dp_rank, std::uint64_t total_kv_blocks)
    {
        kvca_rank rank = kvca::sized<kvca_rank>();
        rank.worker_id = worker_id;
        rank.dp_rank = dp_rank;
        rank.total_kv_blocks = total_kv_blocks;
        kvca_put put = pool_.put(rank);
        if (put.unknown_capacity) {
            std::cerr << "worker " << worker_id << ", dp_rank " << dp_rank
                      << ": no known capacity, so it is never found full\n";
        }
        ranks_.resize(std::max<std::size_t>(ranks_.size(), put.slot + 1));
        ranks_[put.slot] = {worker_id, dp_rank};
    }

    // Waits for requests to end while no rank has room. If none is left to wait for, the request is too large.
    kvca::Placement place(std::uint64_t blocks, std::optional<kvca::Snapshot> *before)
    {
        for (;;) {
            if (auto placement = pool_.place(blocks, before)) {
                return std::move(*placement);
            }
            if (in_flight_.empty()) {
                throw kvca::Error(KVCA_NONE_FITS);
            }
            waits_++;
            in_flight_.pop_front();
        }
    }

    kvca::Pool pool_;
    std::vector<Rank> ranks_;             // by slot
    std::deque<kvca::Booking> in_flight_; // after pool_, so that they end before it
    std::uint64_t waits_ = 0;
};

} // namespace

int main(int argc, char **argv)
try {
    if (argc != 2) {
        std::cerr << "usage: router POLICY\n";
        return 2;
    }
    Router router(kvca::load_policy(argv[1], KVCA_ROLE_DECODE));
    for (std::uint64_t number = 0; number < requests; number++) {
        router.serve(number);
    }
    router.report();
    return 0;
} catch (const kvca::Error &error) {
    std::cerr << error.what() << '\n';
    return error.status() == KVCA_NOT_SELECTED ? 0 : 1; // the policy leaves the pool to the router's own selector
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
