// What a std::exception_ptr calls since GCC 11, by the copies and destructions that older libraries
// have. libstdc++.a has both, too, and with them a std::terminate of its own, which would not know
// the program's handler.
#define ADDREF _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv
#define RELEASE _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv
#define COPY _ZNSt15__exception_ptr13exception_ptrC1ERKS0_
#define DESTROY _ZNSt15__exception_ptr13exception_ptrD1Ev

typedef struct {
  void* object;
} ExceptionPtr;

void COPY(ExceptionPtr* self, const ExceptionPtr* other);
void DESTROY(ExceptionPtr* self);

void ADDREF(const ExceptionPtr* self) {
  ExceptionPtr kept;
  COPY(&kept, self);  // and never destroyed
}

void RELEASE(ExceptionPtr* self) {
  DESTROY(self);
}
