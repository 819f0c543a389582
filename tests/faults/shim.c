/* Stands between a program and the C library, and makes one moment go wrong. Compiled by the tests, loaded with LD_PRELOAD.
 *
 *   FAULT_STATE   a file of 32 bytes: operations so far, the first process, whether it has struck, clock calls
 *   FAULT_UNDER   only operations on paths below this directory count
 *   FAULT_AT      the number of the operation that goes wrong; 0 none
 *   FAULT_DO      kill-main, kill-self, kill-all, or the number of an errno
 *   FAULT_STICKY  set: all operations after that one go wrong, too
 *   FAULT_LOG     a file that gets a line for each operation
 *   FAULT_CLOCK   seconds by which the wall clock jumps forth and back, every 7 calls
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct state { atomic_long count, main_process, struck, clock_calls; };
static struct state *state;
static const char *under, *what, *log_file;
static long at, clock_jump;
static int sticky;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("FAULT_STATE");
    if (!file) return;
    int handle = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (handle < 0) return;
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    syscall(SYS_close, handle);
    if (state == MAP_FAILED) { state = NULL; return; }
    under = getenv("FAULT_UNDER");
    what = getenv("FAULT_DO");
    log_file = getenv("FAULT_LOG");
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    clock_jump = getenv("FAULT_CLOCK") ? atol(getenv("FAULT_CLOCK")) : 0;
    sticky = getenv("FAULT_STICKY") != NULL;
    long none = 0;
    atomic_compare_exchange_strong(&state->main_process, &none, (long)getpid());
}

static void full_path(int directory, const char *path, char *into) {
    char link[64];
    into[0] = 0;
    if (path && path[0] == '/') { snprintf(into, PATH_MAX, "%s", path); return; }
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, into, PATH_MAX - 1);
    if (length < 0) length = 0;
    into[length] = 0;
    if (path && path[0]) snprintf(into + length, (size_t)(PATH_MAX - length), "/%s", path);
}

/* 0, or -1 with errno set: the operation must not be done. */
static int wrong(const char *operation, int directory, const char *path) {
    if (!state || !under) return 0;
    int before = errno;
    char where[PATH_MAX];
    full_path(directory, path, where);
    if (strncmp(where, under, strlen(under)) != 0) { errno = before; return 0; }
    long number = atomic_fetch_add(&state->count, 1) + 1;
    if (log_file) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%s %s\n", operation, where + strlen(under));
        int handle = (int)syscall(SYS_openat, AT_FDCWD, log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (handle >= 0) { syscall(SYS_write, handle, line, (size_t)length); syscall(SYS_close, handle); }
    }
    errno = before;
    if (!at || !what || (number != at && !(sticky && number > at))) return 0;
    atomic_store(&state->struck, 1);
    if (strncmp(what, "kill", 4) == 0) {
        if (number != at) return 0;
        long main_process = atomic_load(&state->main_process);
        if (strcmp(what, "kill-main") == 0) syscall(SYS_kill, (pid_t)main_process, SIGKILL);
        else if (strcmp(what, "kill-all") == 0) syscall(SYS_kill, -(pid_t)main_process, SIGKILL);
        else syscall(SYS_kill, getpid(), SIGKILL);
        return 0;
    }
    if (strncmp(operation, "unlink", 6) == 0 || strcmp(operation, "rmdir") == 0) return 0; /* a full disk gives up its files */
    errno = atoi(what);
    return -1;
}

#define NEXT(type, name, ...) ((type)dlsym(RTLD_NEXT, name))(__VA_ARGS__)
#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))

#define OPEN(name)                                                                              \
    int name(const char *path, int flags, ...) {                                                \
        mode_t mode = 0;                                                                        \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list a; va_start(a, flags); mode = va_arg(a, mode_t); va_end(a); } \
        if (WRITES(flags) && wrong("open", AT_FDCWD, path)) return -1;                          \
        return NEXT(int (*)(const char *, int, ...), #name, path, flags, mode);                 \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                            \
    int name(int directory, const char *path, int flags, ...) {                                 \
        mode_t mode = 0;                                                                        \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list a; va_start(a, flags); mode = va_arg(a, mode_t); va_end(a); } \
        if (WRITES(flags) && wrong("open", directory, path)) return -1;                         \
        return NEXT(int (*)(int, const char *, int, ...), #name, directory, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int handle, const void *data, size_t size) {
    if (wrong("write", handle, NULL)) return -1;
    return NEXT(ssize_t (*)(int, const void *, size_t), "write", handle, data, size);
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
    if (wrong("write", to, NULL)) return -1;
    return NEXT(ssize_t (*)(int, off64_t *, int, off64_t *, size_t, unsigned), "copy_file_range", from, a, to, b, size, flags);
}
int fsync(int handle) {
    if (wrong("fsync", handle, NULL)) return -1;
    return NEXT(int (*)(int), "fsync", handle);
}
int syncfs(int handle) {
    if (wrong("syncfs", handle, NULL)) return -1;
    return NEXT(int (*)(int), "syncfs", handle);
}
int rename(const char *from, const char *to) {
    if (wrong("rename", AT_FDCWD, to)) return -1;
    return NEXT(int (*)(const char *, const char *), "rename", from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    if (wrong("rename", b, to)) return -1;
    return NEXT(int (*)(int, const char *, int, const char *), "renameat", a, from, b, to);
}
int link(const char *from, const char *to) {
    if (wrong("link", AT_FDCWD, to)) return -1;
    return NEXT(int (*)(const char *, const char *), "link", from, to);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    if (wrong("link", b, to)) return -1;
    return NEXT(int (*)(int, const char *, int, const char *, int), "linkat", a, from, b, to, flags);
}
int symlink(const char *target, const char *path) {
    if (wrong("symlink", AT_FDCWD, path)) return -1;
    return NEXT(int (*)(const char *, const char *), "symlink", target, path);
}
int symlinkat(const char *target, int directory, const char *path) {
    if (wrong("symlink", directory, path)) return -1;
    return NEXT(int (*)(const char *, int, const char *), "symlinkat", target, directory, path);
}
int mkdir(const char *path, mode_t mode) {
    if (wrong("mkdir", AT_FDCWD, path)) return -1;
    return NEXT(int (*)(const char *, mode_t), "mkdir", path, mode);
}
int mkdirat(int directory, const char *path, mode_t mode) {
    if (wrong("mkdir", directory, path)) return -1;
    return NEXT(int (*)(int, const char *, mode_t), "mkdirat", directory, path, mode);
}
int unlink(const char *path) {
    if (wrong("unlink", AT_FDCWD, path)) return -1;
    return NEXT(int (*)(const char *), "unlink", path);
}
int unlinkat(int directory, const char *path, int flags) {
    if (wrong("unlink", directory, path)) return -1;
    return NEXT(int (*)(int, const char *, int), "unlinkat", directory, path, flags);
}
int rmdir(const char *path) {
    if (wrong("rmdir", AT_FDCWD, path)) return -1;
    return NEXT(int (*)(const char *), "rmdir", path);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = NEXT(int (*)(clockid_t, struct timespec *), "clock_gettime", clock, now);
    if (done == 0 && clock == CLOCK_REALTIME && state && clock_jump) {
        long call = atomic_fetch_add(&state->clock_calls, 1);
        now->tv_sec += (call / 7 % 2) ? clock_jump : -clock_jump;
    }
    return done;
}
