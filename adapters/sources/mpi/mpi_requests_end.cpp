#include "engine/system/clock.hpp"

#include "adapters/sources/mpi/mpi_held.hpp"
#include "adapters/sources/mpi/mpi_watch.hpp"

namespace ringmain::mpi {
namespace {

/// While it lives its thread waits in MPI for what is held.
template <class In>
class Waiting {
 public:
  explicit Waiting(const Held<In>& held) noexcept {
    if (!waits_are_heard() || (operations_ = held.known()) == 0) return;
    if (held.only() != nullptr) operation_ = *held.only();
    one_ = held.only() != nullptr;
    since_ns_ = engine::now_ns();
    say(collective::Edge::begin, 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (operations_ != 0) say(collective::Edge::end, engine::now_ns() - since_ns_);
  }

 private:
  void say(collective::Edge edge, std::int64_t waited_ns) const noexcept {
    waits(edge, one_ ? &operation_ : nullptr, operations_, waited_ns);
  }
  Operation operation_;  // a copy: MPI may end it, and another thread take its place
  std::uint32_t operations_ = 0;
  bool one_ = false;
  std::int64_t since_ns_ = 0;
};

/// Asks MPI, and says that the thread waits meanwhile.
template <class In, class Ask>
int ask_waiting(const Held<In>& held, bool waits, Ask ask) noexcept {
  if (!waits) return ask(held.statuses());
  const Waiting<In> waiting(held);
  return ask(held.statuses());
}

// Each function here is given the call itself, with the statuses to fill, and returns MPI's code.

template <class In, class Ask>
int wait(typename In::Handle* request, typename In::Status* status, Ask ask) noexcept {
  Held<In> held(1, request, status);
  const int code = ask_waiting(held, true, ask);
  held.over(0, code, 0);
  return code;
}
template <class In, class Ask>
int test(typename In::Handle* request, const int* flag, typename In::Status* status,
         Ask ask) noexcept {
  Held<In> held(1, request, status);
  const int code = ask(held.statuses());
  if (code != MPI_SUCCESS || *flag != 0) held.over(0, code, 0);
  return code;
}
/// `flag`: nullptr where it waits.
template <class In, class Ask>
int any(int n, typename In::Handle* all, int* index, const int* flag, typename In::Status* status,
        int first, Ask ask) noexcept {
  Held<In> held(n, all, status);
  *index = MPI_UNDEFINED;
  const int code = ask_waiting(held, flag == nullptr, ask);
  if ((flag == nullptr || *flag != 0 || code != MPI_SUCCESS) && *index != MPI_UNDEFINED) {
    held.over(*index - first, code, 0);
  }
  return code;
}
template <class In, class Ask>
int all(int n, typename In::Handle* requests, const int* flag, typename In::Status* statuses,
        Ask ask) noexcept {
  Held<In> held(n, requests, statuses);
  const int code = ask_waiting(held, flag == nullptr, ask);
  if (flag == nullptr || *flag != 0 || code != MPI_SUCCESS) held.all_over(code);
  return code;
}
template <class In, class Ask>
int some(int n, typename In::Handle* requests, bool waits, const int* count, const int* indices,
         typename In::Status* statuses, int first, Ask ask) noexcept {
  Held<In> held(n, requests, statuses);
  const int code = ask_waiting(held, waits, ask);
  if (*count != MPI_UNDEFINED) held.some_over(code, *count, indices, first);
  return code;
}
template <class In, class Ask>
int look(typename In::Handle request, const int* flag, typename In::Status* status,
         Ask ask) noexcept {
  Held<In> held(1, &request, status);
  const int code = ask(held.statuses());
  if (code != MPI_SUCCESS || *flag != 0) held.told(code);
  return code;
}
/// Starts one; `ask` does so in MPI.
template <class In, class Ask>
int start(typename In::Handle* handle, Ask ask) noexcept {
  Held<In> held(1, handle, nullptr);
  Request* const request = heard() ? held.request() : nullptr;
  if (request == nullptr) return ask();
  const int code = issue(request->operation, true, ask);
  if (code == MPI_SUCCESS) {
    request->active = true;
  } else {
    ended(request->operation, code, nullptr);
  }
  return code;
}
/// One after the other, which MPI_Startall is said to be like: each is an operation.
template <class In, class Ask>
int start_all(int n, typename In::Handle* handles, Ask ask) noexcept {
  int code = MPI_SUCCESS;
  for (int i = 0; i < n && code == MPI_SUCCESS; ++i)
    code = start<In>(&handles[i], [&] { return ask(&handles[i]); });
  return code;
}
template <class In, class Ask>
int free(typename In::Handle* request, Ask ask) noexcept {
  Held<In> held(1, request, nullptr);
  const int code = ask();
  if (code == MPI_SUCCESS) held.drop();
  return code;
}

int wait_c(MPI_Request* request, MPI_Status* status) noexcept {
  return wait<InC>(request, status, [=](MPI_Status* to) { return PMPI_Wait(request, to); });
}
int waitall_c(int n, MPI_Request* requests, MPI_Status* statuses) noexcept {
  return all<InC>(n, requests, nullptr, statuses,
                  [=](MPI_Status* to) { return PMPI_Waitall(n, requests, to); });
}
int waitany_c(int n, MPI_Request* requests, int* index, MPI_Status* status) noexcept {
  return any<InC>(n, requests, index, nullptr, status, 0,
                  [=](MPI_Status* to) { return PMPI_Waitany(n, requests, index, to); });
}
int waitsome_c(int n, MPI_Request* requests, int* count, int* indices,
               MPI_Status* statuses) noexcept {
  return some<InC>(n, requests, true, count, indices, statuses, 0,
                   [=](MPI_Status* to) { return PMPI_Waitsome(n, requests, count, indices, to); });
}
int test_c(MPI_Request* request, int* flag, MPI_Status* status) noexcept {
  return test<InC>(request, flag, status,
                   [=](MPI_Status* to) { return PMPI_Test(request, flag, to); });
}
int testall_c(int n, MPI_Request* requests, int* flag, MPI_Status* statuses) noexcept {
  return all<InC>(n, requests, flag, statuses,
                  [=](MPI_Status* to) { return PMPI_Testall(n, requests, flag, to); });
}
int testany_c(int n, MPI_Request* requests, int* index, int* flag, MPI_Status* status) noexcept {
  return any<InC>(n, requests, index, flag, status, 0,
                  [=](MPI_Status* to) { return PMPI_Testany(n, requests, index, flag, to); });
}
int testsome_c(int n, MPI_Request* requests, int* count, int* indices,
               MPI_Status* statuses) noexcept {
  return some<InC>(n, requests, false, count, indices, statuses, 0,
                   [=](MPI_Status* to) { return PMPI_Testsome(n, requests, count, indices, to); });
}
int request_get_status_c(MPI_Request request, int* flag, MPI_Status* status) noexcept {
  return look<InC>(request, flag, status,
                   [=](MPI_Status* to) { return PMPI_Request_get_status(request, flag, to); });
}
int request_free_c(MPI_Request* request) noexcept {
  return free<InC>(request, [=] { return PMPI_Request_free(request); });
}
int start_c(MPI_Request* request) noexcept {
  return start<InC>(request, [=] { return PMPI_Start(request); });
}
int startall_c(int n, MPI_Request* requests) noexcept {
  if (!heard()) return PMPI_Startall(n, requests);
  return start_all<InC>(n, requests, [](MPI_Request* one) { return PMPI_Start(one); });
}

/// Calls Fortran's own, with a code also where the program wants none.
template <Layer layer, class... F>
int ask_fortran(Call call, MPI_Fint* code, F... parameters) noexcept {
  MPI_Fint own = MPI_SUCCESS;
  if (code == nullptr) code = &own;
  call_original(layer, call, parameters..., code);
  return *code;
}

using Fint = MPI_Fint;
using FStatus = fortran::Status;

/// Fortran counts from 1, but MPICH 4.0's mpi_f08 from 0. Asks MPI once, with two requests of which
/// the second is over.
int first_index(Layer layer) noexcept {
  if (layer == Layer::mpifh) return 1;
  static const int first = [] {
    MPI_Request over = MPI_REQUEST_NULL;
    (void)PMPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &over);
    Fint requests[] = {PMPI_Request_c2f(MPI_REQUEST_NULL), PMPI_Request_c2f(over)};
    const Fint n = 2;
    Fint index = 2;
    Fint code = MPI_SUCCESS;
    FStatus status{};
    call_original(Layer::f08, kWaitany, &n, requests, &index, &status, &code);
    return index - 1;  // 2 where counting begins with 1
  }();
  return first;
}

template <Layer l>
void wait_f(Fint* request, FStatus* status, Fint* code) noexcept {
  (void)wait<InFortran>(request, status,
                        [=](FStatus* to) { return ask_fortran<l>(kWait, code, request, to); });
}
template <Layer l>
void waitall_f(const Fint* n, Fint* requests, FStatus* statuses, Fint* code) noexcept {
  (void)all<InFortran>(*n, requests, nullptr, statuses, [=](FStatus* to) {
    return ask_fortran<l>(kWaitall, code, n, requests, to);
  });
}
template <Layer l>
void waitany_f(const Fint* n, Fint* requests, Fint* index, FStatus* status, Fint* code) noexcept {
  (void)any<InFortran>(*n, requests, index, nullptr, status, first_index(l), [=](FStatus* to) {
    return ask_fortran<l>(kWaitany, code, n, requests, index, to);
  });
}
template <Layer l>
void waitsome_f(const Fint* n, Fint* requests, Fint* count, Fint* indices, FStatus* statuses,
                Fint* code) noexcept {
  (void)some<InFortran>(*n, requests, true, count, indices, statuses, first_index(l),
                        [=](FStatus* to) {
                          return ask_fortran<l>(kWaitsome, code, n, requests, count, indices, to);
                        });
}
template <Layer l>
void test_f(Fint* request, Fint* flag, FStatus* status, Fint* code) noexcept {
  (void)test<InFortran>(request, flag, status, [=](FStatus* to) {
    return ask_fortran<l>(kTest, code, request, flag, to);
  });
}
template <Layer l>
void testall_f(const Fint* n, Fint* requests, Fint* flag, FStatus* statuses, Fint* code) noexcept {
  (void)all<InFortran>(*n, requests, flag, statuses, [=](FStatus* to) {
    return ask_fortran<l>(kTestall, code, n, requests, flag, to);
  });
}
template <Layer l>
void testany_f(const Fint* n, Fint* requests, Fint* index, Fint* flag, FStatus* status,
               Fint* code) noexcept {
  (void)any<InFortran>(*n, requests, index, flag, status, first_index(l), [=](FStatus* to) {
    return ask_fortran<l>(kTestany, code, n, requests, index, flag, to);
  });
}
template <Layer l>
void testsome_f(const Fint* n, Fint* requests, Fint* count, Fint* indices, FStatus* statuses,
                Fint* code) noexcept {
  (void)some<InFortran>(*n, requests, false, count, indices, statuses, first_index(l),
                        [=](FStatus* to) {
                          return ask_fortran<l>(kTestsome, code, n, requests, count, indices, to);
                        });
}
template <Layer l>
void request_get_status_f(const Fint* request, Fint* flag, FStatus* status, Fint* code) noexcept {
  (void)look<InFortran>(*request, flag, status, [=](FStatus* to) {
    return ask_fortran<l>(kRequest_get_status, code, request, flag, to);
  });
}
template <Layer l>
void request_free_f(Fint* request, Fint* code) noexcept {
  (void)free<InFortran>(request, [=] { return ask_fortran<l>(kRequest_free, code, request); });
}
template <Layer l>
void start_f(Fint* request, Fint* code) noexcept {
  const int answer =
      start<InFortran>(request, [=] { return ask_fortran<l>(kStart, code, request); });
  if (code != nullptr) *code = answer;
}
template <Layer l>
void startall_f(const Fint* n, Fint* requests, Fint* code) noexcept {
  if (!heard()) return void(ask_fortran<l>(kStartall, code, n, requests));
  const int answer = start_all<InFortran>(
      *n, requests, [=](Fint* one) { return ask_fortran<l>(kStart, code, one); });
  if (code != nullptr) *code = answer;
}

}  // namespace

void watch_requests(Targets& targets) noexcept {
#define RINGMAIN_MPI_WATCH(call, small) \
  watch(targets, call, small##_c, small##_f<Layer::mpifh>, small##_f<Layer::f08>)
  RINGMAIN_MPI_WATCH(kWait, wait);
  RINGMAIN_MPI_WATCH(kWaitall, waitall);
  RINGMAIN_MPI_WATCH(kWaitany, waitany);
  RINGMAIN_MPI_WATCH(kWaitsome, waitsome);
  RINGMAIN_MPI_WATCH(kTest, test);
  RINGMAIN_MPI_WATCH(kTestall, testall);
  RINGMAIN_MPI_WATCH(kTestany, testany);
  RINGMAIN_MPI_WATCH(kTestsome, testsome);
  RINGMAIN_MPI_WATCH(kRequest_free, request_free);
  RINGMAIN_MPI_WATCH(kRequest_get_status, request_get_status);
  RINGMAIN_MPI_WATCH(kStart, start);
  RINGMAIN_MPI_WATCH(kStartall, startall);
#undef RINGMAIN_MPI_WATCH
}

}  // namespace ringmain::mpi
