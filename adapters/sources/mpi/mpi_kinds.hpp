// Which kinds of parameters do the calls of mpi_calls.hpp have? Each kind has a type in C and in
// Fortran, and what of it counts for the amount that is moved.
//
// Fortran passes all parameters by reference, and handles as integers. In mpi_f08 a handle is a
// struct of one integer, which looks the same.
#pragma once
#include "adapters/sources/mpi/mpi_abi.hpp"
#include "adapters/sources/mpi/mpi_fortran.hpp"

namespace ringmain::mpi {

struct Unread {};  // a parameter that says nothing about how much is moved

/// An array of types, which only the calls that end in w have.
struct TypeList {
  const MPI_Datatype* c = nullptr;
  const MPI_Fint* fortran = nullptr;
  [[nodiscard]] MPI_Datatype operator[](int i) const noexcept {
    return c != nullptr ? c[i] : PMPI_Type_f2c(fortran[i]);
  }
};

struct Give {
  using C = const void*;
  using F = const void*;
  static const void* of_c(C at) noexcept { return at; }
  static const void* of_fortran(F at) noexcept {
    return fortran::is_in_place(at) ? MPI_IN_PLACE : at;
  }
};
struct Get {
  using C = void*;
  using F = void*;
  static const void* of_c(C at) noexcept { return at; }
  static const void* of_fortran(F at) noexcept {
    return fortran::is_in_place(at) ? MPI_IN_PLACE : at;
  }
};
struct Count {
  using C = int;
  using F = const MPI_Fint*;
  static int of_c(C n) noexcept { return n; }
  static int of_fortran(F n) noexcept { return *n; }
};
struct Counts {
  using C = const int*;
  using F = const MPI_Fint*;
  static const int* of_c(C n) noexcept { return n; }
  static const int* of_fortran(F n) noexcept { return n; }
};
struct Type {
  using C = MPI_Datatype;
  using F = const MPI_Fint*;
  static MPI_Datatype of_c(C type) noexcept { return type; }
  static MPI_Datatype of_fortran(F type) noexcept { return PMPI_Type_f2c(*type); }
};
struct Types {
  using C = const MPI_Datatype*;
  using F = const MPI_Fint*;
  static TypeList of_c(C types) noexcept { return {types, nullptr}; }
  static TypeList of_fortran(F types) noexcept { return {nullptr, types}; }
};
struct Comm {
  using C = MPI_Comm;
  using F = const MPI_Fint*;
  static MPI_Comm of_c(C comm) noexcept { return comm; }
  static MPI_Comm of_fortran(F comm) noexcept { return PMPI_Comm_f2c(*comm); }
};
using Root = Count;
using Peer = Count;

/// A parameter that is passed on unread.
template <class InC, class InFortran>
struct Passed {
  using C = InC;
  using F = InFortran;
  static Unread of_c(C) noexcept { return {}; }
  static Unread of_fortran(F) noexcept { return {}; }
};
using Tag = Passed<int, const MPI_Fint*>;
using Places = Passed<const int*, const MPI_Fint*>;
using Addresses = Passed<const MPI_Aint*, const MPI_Aint*>;
using Reduction = Passed<MPI_Op, const MPI_Fint*>;
using Message = Passed<MPI_Message*, MPI_Fint*>;
using Status = Passed<MPI_Status*, fortran::Status*>;

}  // namespace ringmain::mpi
