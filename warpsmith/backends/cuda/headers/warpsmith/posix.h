// Files, folders and processes of a POSIX host for NVRTC: declared and never defined, as in <warpsmith/library.h>.
#pragma once
#include <warpsmith/library.h>

typedef int pid_t;
typedef unsigned int mode_t, uid_t, gid_t, socklen_t;
typedef long off_t;

#define ENOENT 2
#define EINTR 4
#define EAGAIN 11
#define ENOMEM 12
#define EEXIST 17
#define EINVAL 22
#define errno (*static_cast<int*>(warpsmith_of_a_host()))

struct stat {
  mode_t st_mode;
  off_t st_size;
};
struct dirent {
  char d_name[256];
};
struct DIR;
struct in_addr {
  unsigned int s_addr;
};

__device__ int stat(const char*, struct stat*);
__device__ int mkdir(const char*, mode_t);
__device__ DIR* opendir(const char*);
__device__ dirent* readdir(DIR*);
__device__ int closedir(DIR*);
__device__ int open(const char*, int, ...);
__device__ int close(int);
__device__ ssize_t read(int, void*, size_t);
__device__ ssize_t write(int, const void*, size_t);
__device__ int access(const char*, int);
__device__ int unlink(const char*);
__device__ pid_t getpid();
__device__ unsigned sleep(unsigned);
__device__ int usleep(unsigned);
__device__ int gethostname(char*, size_t);
__device__ long sysconf(int);
__device__ unsigned short htons(unsigned short);
__device__ unsigned int htonl(unsigned int);
__device__ unsigned short ntohs(unsigned short);
__device__ unsigned int ntohl(unsigned int);
__device__ unsigned int inet_addr(const char*);
