// What is a header of the standard library's that every program knows? The reference of row 14.
#include <functional>
