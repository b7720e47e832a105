/* A C program that says one of each through NVTX. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

static void* end_it(void* id) {
  nvtxRangeEnd(*(nvtxRangeId_t*)id);
  return NULL;
}

static nvtxEventAttributes_t attributes(void) {
  nvtxEventAttributes_t a;
  memset(&a, 0, sizeof a);
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return a;
}

/* With "_exit" or "exec" it ends that way, right after its last call. */
int main(int argc, char** argv) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("loader");
  nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "registered");
  nvtxEventAttributes_t a = attributes();
  nvtxRangeId_t id;
  pthread_t thread;
  int outer;
  int ended;

  nvtxMarkA("hello");
  outer = nvtxRangePushA("outer");
  nvtxRangePushW(L"w\u00efde");
  nvtxRangePop();
  ended = nvtxRangePop();
  printf("%d %d %d\n", outer, ended, nvtxRangePop() < 0);

  id = nvtxRangeStartA("started");
  pthread_create(&thread, NULL, end_it, &id);
  pthread_join(thread, NULL);

  nvtxDomainNameCategoryA(domain, 3, "io");
  a.category = 3;
  a.colorType = NVTX_COLOR_ARGB;
  a.color = 0xff112233u;
  a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  a.payload.llValue = -42;
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  a.message.registered = name;
  nvtxDomainRangePushEx(domain, &a);
  nvtxDomainMarkEx(domain, &a);
  nvtxDomainRangePop(domain);
  nvtxDomainDestroy(domain);
  fflush(stdout);
  if (argc > 1 && strcmp(argv[1], "_exit") == 0) _exit(3);
  if (argc > 1 && strcmp(argv[1], "exec") == 0) execlp("true", "true", (char*)NULL);
  return 0;
}
