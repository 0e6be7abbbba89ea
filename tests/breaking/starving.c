/* Loaded before a program (LD_PRELOAD): writes to files under $FAULT_FOLDER fail with EIO after $FAULT_AFTER bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long long left = -1;

static int broken(int fd, size_t size) {
    static __thread int inside = 0;
    const char *folder = getenv("FAULT_FOLDER"), *after = getenv("FAULT_AFTER");
    char name[64], path[4096];
    ssize_t length;
    if (inside || !folder || !after)
        return 0;
    inside = 1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    length = readlink(name, path, sizeof path - 1);
    inside = 0;
    if (length < 0)
        return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)))
        return 0;
    if (left < 0)
        left = atoll(after);
    if ((long long)size > left)
        return 1;
    left -= size;
    return 0;
}

ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (broken(fd, size)) {
        errno = EIO;
        return -1;
    }
    return real(fd, data, size);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    if (broken(fd, 0) || left == 0) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}
