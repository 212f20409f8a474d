/*
 * A small server, and clients that keep it busy: something to record.
 *
 *     make -C examples/server && kymo record -- examples/server/server 2        for two seconds
 *     kymo pairs kymo-traces/server-*                                           how long requests took, by what they asked for
 *
 * Clients ask through sockets for pages; workers take them from a queue, look into a cache behind one lock, and render what is not
 * there. Every hundredth page is one that is never cached, so that a few requests take a hundred times as long as most. Each request is a
 * call of a page by a client, which a worker serves and answers; how long the queue is, is a counter.
 */
#include <kymo/kymo.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 4, WORKERS = 2, PAGES = 64, QUEUE = 16 };

struct request {
    int to;      /* where the answer goes */
    unsigned id; /* no other one has it */
    char page[24];
};

/* What no other call of this machine is known by. */
static uint64_t call(const struct request *request)
{
    return (uint64_t)getpid() << 32 | request->id;
}

KYMO_EVENT_AT(info, server, accept, KYMO_U32(id), KYMO_TEXT(page), KYMO_U32(waiting));
KYMO_EVENT_AT(info, server, request_begin, KYMO_U32(id), KYMO_TEXT(page), KYMO_U8(worker));
KYMO_EVENT_AT(info, server, request_end, KYMO_U32(id), KYMO_ENUM(u8, outcome, cached=0, rendered=1), KYMO_U32(bytes));
KYMO_EVENT(server, cache_look, KYMO_U32(id), KYMO_BOOL(is_there), KYMO_U32(entries));

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_grew = PTHREAD_COND_INITIALIZER;
static struct request queue[QUEUE];
static unsigned queue_begin, queue_length;
static bool queue_is_closed; /* nothing comes any more */
static unsigned char cache[PAGES];
static atomic_bool is_over;
static atomic_uint ids;

/* What takes long: a page is made of a hundred thousand steps. */
static unsigned render(const char *page)
{
    KYMO_SCOPE("render");
    unsigned hash = 1;
    for (unsigned step = 0; step < 100000; step++)
        hash = hash * 31 + (unsigned char)page[step % strlen(page)];
    return hash;
}

static bool look(const struct request *request, unsigned page)
{
    pthread_mutex_lock(&cache_lock);
    const bool is_there = page < PAGES && cache[page];
    unsigned entries = 0;
    for (unsigned other = 0; other < PAGES; other++)
        entries += cache[other];
    if (page < PAGES)
        cache[page] = 1;
    pthread_mutex_unlock(&cache_lock);
    kymo_server_cache_look(request->id, is_there, entries);
    return is_there;
}

static void serve(const struct request *request, unsigned worker)
{
    char answer[64];
    KYMO_RPC_DISPATCH("page", call(request));
    kymo_server_request_begin(request->id, request->page, (uint8_t)worker);
    const unsigned page = (unsigned)atoi(request->page + strlen("/page/"));
    const bool is_cached = look(request, page);
    const unsigned hash = is_cached ? page : render(request->page);
    const int length = snprintf(answer, sizeof answer, "%s %08x", request->page, hash);
    kymo_server_request_end(request->id, !is_cached, (uint32_t)length);
    KYMO_RPC_REPLY("page", call(request));
    if (write(request->to, answer, (size_t)length) < 0)
        kymo_log(KYMO_WARNING, "request %u: its client is gone", request->id);
}

static void *work(void *number)
{
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        while (queue_length == 0 && !queue_is_closed)
            pthread_cond_wait(&queue_grew, &queue_lock);
        if (queue_length == 0) {
            pthread_mutex_unlock(&queue_lock);
            return NULL;
        }
        const struct request request = queue[queue_begin];
        queue_begin = (queue_begin + 1) % QUEUE;
        queue_length--;
        KYMO_COUNTER("queue", queue_length);
        pthread_mutex_unlock(&queue_lock);
        serve(&request, (unsigned)(size_t)number);
    }
}

/* Each client has one request at a time, so that the queue is never full. */
static void enqueue(const struct request *request)
{
    pthread_mutex_lock(&queue_lock);
    queue[(queue_begin + queue_length++) % QUEUE] = *request;
    kymo_server_accept(request->id, request->page, queue_length);
    KYMO_COUNTER("queue", queue_length);
    pthread_cond_signal(&queue_grew);
    pthread_mutex_unlock(&queue_lock);
}

static void *ask(void *number)
{
    unsigned seed = (unsigned)(size_t)number + 1;
    int ends[2];
    char answer[64];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return NULL;
    for (unsigned asked = 0; !atomic_load(&is_over); asked++) {
        struct request request = {.to = ends[1], .id = atomic_fetch_add(&ids, 1)};
        const unsigned page = asked % 100 == 99 ? PAGES + asked : (unsigned)rand_r(&seed) % PAGES;
        snprintf(request.page, sizeof request.page, "/page/%u", page);
        KYMO_RPC_CALL("page", call(&request));
        enqueue(&request);
        if (read(ends[0], answer, sizeof answer) <= 0)
            break;
        KYMO_RPC_RETURN("page", call(&request));
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    close(ends[0]);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t clients[CLIENTS], workers[WORKERS];
    const unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    for (size_t worker = 0; worker < WORKERS; worker++)
        pthread_create(&workers[worker], NULL, work, (void *)worker);
    for (size_t client = 0; client < CLIENTS; client++)
        pthread_create(&clients[client], NULL, ask, (void *)client);
    sleep(seconds);
    atomic_store(&is_over, true);
    for (size_t client = 0; client < CLIENTS; client++)
        pthread_join(clients[client], NULL);
    /* Only now: a client that had begun to ask when time was over is answered. */
    pthread_mutex_lock(&queue_lock);
    queue_is_closed = true;
    pthread_cond_broadcast(&queue_grew);
    pthread_mutex_unlock(&queue_lock);
    for (size_t worker = 0; worker < WORKERS; worker++)
        pthread_join(workers[worker], NULL);
    printf("%u requests served\n", atomic_load(&ids));
    return 0;
}
