// <cstdio>, <cstdlib>, <cstring>, <cctype> and <ctime> for NVRTC. What CUDA has built in works: `printf`,
// `malloc`, `free`, `memcpy`, `memset`, `clock`. What only a host has is declared and never defined, so that
// the host functions of a header can be read, and a kernel that calls one fails to link.
#pragma once
#include <warpsmith/integers.h>

__device__ void* warpsmith_of_a_host();
// A static variable of a host function may begin with these, and device code has constants only.
__device__ constexpr char* getenv(const char*) {
  return __builtin_is_constant_evaluated() ? nullptr : static_cast<char*>(warpsmith_of_a_host());
}
__device__ constexpr int atoi(const char*) {
  return __builtin_is_constant_evaluated() ? 0 : *static_cast<int*>(warpsmith_of_a_host());
}

struct FILE;
#define stdout static_cast<FILE*>(nullptr)
#define stderr static_cast<FILE*>(nullptr)
#define EOF (-1)
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
template <class... T> __device__ int fprintf(FILE*, const char*, T...);
template <class... T> __device__ int snprintf(char*, size_t, const char*, T...);
template <class... T> __device__ int sprintf(char*, const char*, T...);
__device__ int fflush(FILE*);
__device__ FILE* fopen(const char*, const char*);
__device__ int fclose(FILE*);
__device__ size_t fread(void*, size_t, size_t, FILE*);
__device__ size_t fwrite(const void*, size_t, size_t, FILE*);
__device__ int fseek(FILE*, long, int);
__device__ long ftell(FILE*);
__device__ int feof(FILE*);
__device__ int ferror(FILE*);
__device__ char* fgets(char*, int, FILE*);
__device__ char* strerror(int);
__device__ int puts(const char*);
[[noreturn]] __device__ void abort();
[[noreturn]] __device__ void exit(int);
__device__ double atof(const char*);
__device__ long strtol(const char*, char**, int);
__device__ unsigned long strtoul(const char*, char**, int);
__device__ unsigned long long strtoull(const char*, char**, int);
__device__ double strtod(const char*, char**);
__device__ int rand();
__device__ void srand(unsigned);
__device__ int strcmp(const char*, const char*);
__device__ int strncmp(const char*, const char*, size_t);
__device__ char* strstr(const char*, const char*);
__device__ size_t strlen(const char*);
__device__ int memcmp(const void*, const void*, size_t);
__device__ void* memmove(void*, const void*, size_t);
__device__ void* calloc(size_t, size_t);

namespace std {
using ::abort; using ::atof; using ::atoi; using ::calloc; using ::clock; using ::exit; using ::fflush; using ::fprintf;
using ::free; using ::getenv; using ::malloc; using ::memcmp; using ::memcpy; using ::memmove; using ::memset;
using ::printf; using ::puts; using ::rand; using ::snprintf; using ::sprintf; using ::srand; using ::strcmp;
using ::strlen; using ::strncmp; using ::strstr;
}  // namespace std
