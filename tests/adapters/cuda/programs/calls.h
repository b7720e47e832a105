/* The calls of CUDA's runtime that these programs make, found when they start: they are built
 * without CUDA's headers. */
#pragma once
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void* Event;
static struct {
  int (*event_create)(Event*);
  int (*event_record)(Event, void* stream);
  int (*event_destroy)(Event);
  int (*malloc)(void**, size_t);
  int (*free)(void*);
} cuda;

static inline void* find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) exit(90);
  return found;
}

static inline void load(void) {
  void* const library = dlopen("libcudart.so.13", RTLD_NOW);
  if (library == NULL) {
    puts(dlerror());
    exit(91);
  }
  *(void**)&cuda.event_create = find(library, "cudaEventCreate");
  *(void**)&cuda.event_record = find(library, "cudaEventRecord");
  *(void**)&cuda.event_destroy = find(library, "cudaEventDestroy");
  *(void**)&cuda.malloc = find(library, "cudaMalloc");
  *(void**)&cuda.free = find(library, "cudaFree");
}

/* The call that initialises CUDA. */
static inline void start(void) {
  if (cuda.free(NULL)) exit(97);
}

/* `count` events and allocations, each made, used and taken back: 5 calls. */
static inline void* call(void* count) {
  long i;
  for (i = 0; i < *(long*)count; ++i) {
    Event event;
    void* memory;
    if (cuda.event_create(&event) || cuda.event_record(event, NULL) || cuda.event_destroy(event))
      exit(92);
    if (cuda.malloc(&memory, 512) || cuda.free(memory)) exit(93);
  }
  return NULL;
}
