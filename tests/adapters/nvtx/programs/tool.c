/* Another NVTX tool: counts pushes, pops and what it was told of its own handles. */
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

static int pushes, pops, own, foreign;
static int its_domain, its_string;

static int push(const char* text) {
  (void)text;
  return pushes++;
}
static int pop(void) {
  return pops++;
}
static nvtxDomainHandle_t create(const char* name) {
  (void)name;
  return (nvtxDomainHandle_t)&its_domain;
}
static nvtxStringHandle_t string(nvtxDomainHandle_t domain, const char* text) {
  (void)text;
  *(domain == (nvtxDomainHandle_t)&its_domain ? &own : &foreign) += 1;
  return (nvtxStringHandle_t)&its_string;
}
static int push_in(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  int both = domain == (nvtxDomainHandle_t)&its_domain &&
             a->message.registered == (nvtxStringHandle_t)&its_string;
  *(both ? &own : &foreign) += 1;
  return 0;
}
static void say(void) {
  fprintf(stderr, "tool: %d pushes, %d pops, %d own, %d foreign\n", pushes, pops, own, foreign);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  static int once;
  const NvtxExportTableCallbacks* callbacks =
      (const NvtxExportTableCallbacks*)get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned count;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &count)) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &count)) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)string;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push_in;
  if (once++ == 0) atexit(say);
  return 1;
}
