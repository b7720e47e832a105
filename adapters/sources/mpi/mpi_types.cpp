// What is a datatype called, whatever MPI's name for it is? By what it is: int32, float64.
#include <array>
#include <cstddef>
#include <cstdio>

#include "adapters/sources/mpi/mpi_abi.hpp"

namespace ringmain::mpi {
namespace {

struct Known {
  std::uint64_t handle = 0;
  TypeFacts facts;
};
// Written before the first event is published; read by all threads.
constinit std::array<Known, 256> known{};
constinit Name derived;

std::size_t home_of(std::uint64_t handle) noexcept {
  return (handle * 0x9e3779b97f4a7c15u) >> 56;
}
static_assert(known.size() == 256);

/// `name`; or that and its bits, where MPI leaves the size to the compiler.
void remember(MPI_Datatype type, const char* name, bool with_bits) noexcept {
  if (type == MPI_DATATYPE_NULL) return;  // this MPI does not have it
  int bytes = 0;
  if (PMPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes <= 0) return;
  char text[64];
  std::snprintf(text, sizeof text, with_bits ? "%s%d" : "%s", name, bytes * 8);
  for (std::size_t i = 0; i < known.size(); ++i) {
    Known& place = known[(home_of(bits_of(type)) + i) % known.size()];
    if (place.handle == bits_of(type)) return;
    if (place.handle != 0) continue;
    place = {bits_of(type), {Name(text), static_cast<std::uint64_t>(bytes)}};
    return;
  }
}

}  // namespace

void name_types() noexcept {
  derived = Name("derived");
  for (const MPI_Datatype type :
       {MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
        MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_COUNT, MPI_OFFSET, MPI_INTEGER, MPI_INTEGER1,
        MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8}) {
    remember(type, "int", true);
  }
  for (const MPI_Datatype type :
       {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T}) {
    remember(type, "uint", true);
  }
  for (const MPI_Datatype type :
       {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8, MPI_REAL16}) {
    remember(type, "float", true);
  }
  for (const MPI_Datatype type :
       {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8,
        MPI_COMPLEX16, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX}) {
    remember(type, "complex", true);
  }
  struct Word {
    MPI_Datatype type;
    const char* name;
  };
  const Word words[] = {{MPI_BYTE, "byte"},
                        {MPI_CHAR, "char"},
                        {MPI_CHARACTER, "char"},
                        {MPI_WCHAR, "wchar"},
                        {MPI_PACKED, "packed"},
                        {MPI_C_BOOL, "bool"},
                        {MPI_CXX_BOOL, "bool"},
                        {MPI_LOGICAL, "logical"},
                        {MPI_LONG_DOUBLE, "long_double"},
                        {MPI_C_LONG_DOUBLE_COMPLEX, "complex_long_double"},
                        {MPI_FLOAT_INT, "float32_int32"},
                        {MPI_DOUBLE_INT, "float64_int32"},
                        {MPI_LONG_INT, "long_int32"},
                        {MPI_2INT, "int32_int32"},
                        {MPI_SHORT_INT, "int16_int32"},
                        {MPI_LONG_DOUBLE_INT, "long_double_int32"},
                        {MPI_2REAL, "float32_float32"},
                        {MPI_2DOUBLE_PRECISION, "float64_float64"},
                        {MPI_2INTEGER, "int32_int32"}};
  for (const Word& word : words) remember(word.type, word.name, false);
}

TypeFacts type_of(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return {};
  const std::uint64_t handle = bits_of(type);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Known& place = known[(home_of(handle) + i) % known.size()];
    if (place.handle == handle) return place.facts;
    if (place.handle == 0) break;
  }
  MPI_Count bytes = 0;
  if (PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) bytes = 0;
  return {derived, static_cast<std::uint64_t>(bytes)};
}

}  // namespace ringmain::mpi
