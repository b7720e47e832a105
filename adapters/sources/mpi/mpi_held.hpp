// Which operations do the requests of one call mean, and which of them are over when it returns?
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "adapters/sources/mpi/mpi_watch.hpp"

namespace ringmain::mpi {

/// How requests and statuses look in C and in Fortran.
struct InC {
  using Handle = MPI_Request;
  using Status = MPI_Status;
  static std::uint64_t bits(Handle handle) noexcept { return bits_of(handle); }
  static bool ignored(const Status* given) noexcept {
    return given == nullptr || given == MPI_STATUS_IGNORE || given == MPI_STATUSES_IGNORE;
  }
  static MPI_Status read(const Status& status) noexcept { return status; }
};
struct InFortran {
  using Handle = MPI_Fint;
  using Status = fortran::Status;
  static std::uint64_t bits(Handle handle) noexcept { return bits_of(PMPI_Request_f2c(handle)); }
  static bool ignored(const Status* given) noexcept {
    return given == nullptr || fortran::is_ignored(given);
  }
  static MPI_Status read(const Status& status) noexcept {
    MPI_Status read{};
    (void)PMPI_Status_f2c(status.words, &read);
    return read;
  }
};

/// Grows to what a thread's calls need, and stays.
template <class T>
T* room(int n) noexcept {
  static thread_local std::vector<T> kept;
  try {
    if (kept.size() < static_cast<std::size_t>(n)) kept.resize(static_cast<std::size_t>(n));
    return kept.data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// The requests of one call. While MPI looks at them other threads cannot find them; its destructor
/// shows those again that are not over.
template <class In>
class Held {
 public:
  using Status = typename In::Status;

  Held(int n, const typename In::Handle* handles, Status* given) noexcept
      : n_(n > 0 && fortran_depth() == 0 ? n : 0), statuses_(given) {
    if (n_ > 1) requests_ = room<Request*>(n_);
    if (requests_ == nullptr) n_ = 0;  // out of memory: their ends are not seen
    for (int i = 0; i < n_; ++i) {
      requests_[i] = requests().hold(In::bits(handles[i]));
      any_ = any_ || requests_[i] != nullptr;
    }
    if (!any_ || !In::ignored(given)) return;
    Status* const ours = n_ > 1 ? room<Status>(n_) : &one_status_;
    if (ours != nullptr) statuses_ = ours;
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    for (int i = 0; any_ && i < n_; ++i) {
      if (requests_[i] != nullptr) Requests::show(*requests_[i]);
    }
  }

  /// What the caller waits for: one operation, or several.
  [[nodiscard]] const Operation* only() const noexcept {
    return any_ && n_ == 1 ? &requests_[0]->operation : nullptr;
  }
  [[nodiscard]] std::uint32_t known() const noexcept {
    std::uint32_t all = 0;
    for (int i = 0; any_ && i < n_; ++i) {
      if (requests_[i] != nullptr && requests_[i]->active) ++all;
    }
    return all;
  }
  /// The statuses that MPI fills: the program's, or this object's.
  [[nodiscard]] Status* statuses() const noexcept { return statuses_; }
  /// The i-th request is over, as the k-th status says.
  void over(int i, int code, int k) noexcept {
    if (!any_ || i < 0 || i >= n_ || requests_[i] == nullptr) return;
    Request& request = *requests_[i];
    if (request.active) {
      const bool told = !In::ignored(statuses_);
      const MPI_Status status = told ? In::read(statuses_[k]) : MPI_Status{};
      ended(request.operation, code, told ? &status : nullptr);
    }
    request.active = false;
    if (request.persistent) return;
    let_go(i);
  }
  void all_over(int code) noexcept {
    for (int i = 0; any_ && i < n_; ++i) {
      const int own = own_code(code, i);
      if (own != MPI_ERR_PENDING) over(i, own, i);
    }
  }
  /// `first`: the index of the first request, as MPI counts.
  void some_over(int code, int n, const int* indices, int first) noexcept {
    for (int k = 0; any_ && k < n; ++k) over(indices[k] - first, own_code(code, k), k);
  }
  /// Its end was seen; the request stays until the program waits for it.
  void told(int code) noexcept {
    if (!any_ || !requests_[0]->active) return;
    const bool known = !In::ignored(statuses_);
    const MPI_Status status = known ? In::read(statuses_[0]) : MPI_Status{};
    ended(requests_[0]->operation, code, known ? &status : nullptr);
    requests_[0]->active = false;
  }
  /// The one request; nullptr: it is not known.
  [[nodiscard]] Request* request() const noexcept { return any_ ? requests_[0] : nullptr; }
  /// MPI has forgotten the requests: who of them goes on has no end that can be seen.
  void drop() noexcept {
    for (int i = 0; any_ && i < n_; ++i) {
      if (requests_[i] == nullptr) continue;
      if (requests_[i]->active) lost_sight_of(requests_[i]->operation, "its request was freed");
      let_go(i);
    }
  }

 private:
  void let_go(int i) noexcept {
    Kept* const kept = requests_[i]->operation.kept;
    Requests::drop(*requests_[i]);
    requests_[i] = nullptr;
    if (kept != nullptr) kept->release();
  }
  /// Where there are several requests, each has its own error in its status.
  [[nodiscard]] int own_code(int code, int k) const noexcept {
    if (code == MPI_SUCCESS) return code;
    int error_class = code;
    (void)PMPI_Error_class(code, &error_class);
    if (error_class != MPI_ERR_IN_STATUS) return MPI_ERR_PENDING;  // nothing was done
    return In::ignored(statuses_) ? code : In::read(statuses_[k]).MPI_ERROR;
  }

  int n_;
  bool any_ = false;
  Status* statuses_;
  Request* one_ = nullptr;
  Request** requests_ = &one_;
  Status one_status_{};
};

}  // namespace ringmain::mpi
