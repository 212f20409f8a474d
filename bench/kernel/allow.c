/* For trace-cmd on machines whose kernel refuses to have its function tracer changed: it opens these files although it does not use that tracer,
   and gives up when it cannot. With this library before its own, it writes to nowhere instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

static const char *allowed(const char *path) {
    static const char *const files[] = {"/set_ftrace_filter", "/set_ftrace_notrace", "/set_ftrace_pid", "/set_ftrace_notrace_pid", "/ftrace_enabled"};
    size_t length = strlen(path);
    for (size_t file = 0; file < sizeof files / sizeof *files; file++) {
        size_t end = strlen(files[file]);
        if (length > end && strcmp(path + length - end, files[file]) == 0) return "/dev/null";
    }
    return path;
}

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...) {                                \
        static int (*real)(const char *, int, ...);                             \
        if (real == NULL) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        int mode = flags & O_CREAT ? va_arg(rest, int) : 0;                     \
        va_end(rest);                                                           \
        return real(allowed(path), flags, mode);                         \
    }

OPEN(open)
OPEN(open64)
